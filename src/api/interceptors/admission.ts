/** Under overload ordinary calls are refused before anything of them is read; those that end sessions, and probes, go on. */
import type { HandlerContext } from "@connectrpc/connect";
import { Health } from "../../../gen/grpc/health/v1/health_pb.ts";
import { SHARED_ERRORS } from "../errors/connect-errors.ts";

/** By name of the RPC: what has to work while all else waits. The feed costs a call at its start alone. */
const URGENT: ReadonlySet<string> = new Set([
  "Logout",
  "LogoutByCookie",
  "RevokeSession",
  "RevokeOtherSessions",
  "RevokeSubjectSessions",
  "RevokeAllSessions",
  "WatchRevocations",
]);

/** @param accept accepts an ordinary call, or not */
export function admissionControl(accept: () => boolean): (context: Pick<HandlerContext, "method">) => void {
  return ({ method }) => {
    if (URGENT.has(method.name) || method.parent.typeName === Health.typeName) return;
    if (!accept()) throw SHARED_ERRORS.overloaded;
  };
}
