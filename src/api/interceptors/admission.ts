/**
 * Refuses calls before anything of them is read: under overload ordinary ones, while those that end sessions, and probes, go on;
 * after a stall of the process those that may be too old to be acted upon.
 */
import type { HandlerContext } from "@connectrpc/connect";
import { Health } from "../../../gen/grpc/health/v1/health_pb.ts";
import { SHARED_ERRORS } from "../errors/connect-errors.ts";
import { requestContextOf } from "../request-context.ts";

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

/** By name of the RPC: what presents a refresh token, which the rules of rotation want young. */
const ROTATIONS: ReadonlySet<string> = new Set(["Refresh", "RegisterDevice", "RenewDevice"]);

/** How long calls may have waited, ms. */
type CallTolerances = { readonly rotationMs: number; readonly othersMs: number };

/** @param accept accepts an ordinary call, or not */
export function admissionControl(
  accept: () => boolean,
  tolerances: CallTolerances,
): (context: Pick<HandlerContext, "method" | "values">) => void {
  return (context) => {
    const { method } = context;
    if (method.parent.typeName === Health.typeName) return;
    const waitMs = requestContextOf(context).source.waitMs();
    // A stream acts upon nothing that may be too old.
    if (waitMs > 0 && method.methodKind === "unary") {
      const isRotation = ROTATIONS.has(method.name);
      if (waitMs > (isRotation ? tolerances.rotationMs : tolerances.othersMs)) throw SHARED_ERRORS.stalled;
    }
    if (!URGENT.has(method.name) && !accept()) throw SHARED_ERRORS.overloaded;
  };
}
