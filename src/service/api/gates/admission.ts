/**
 * Refuses calls before they are read: under overload all but probes and calls that end or update sessions, and after a stall of the process calls that
 * may be too old.
 */
import { Health } from "../../../../gen/grpc/health/v1/health_pb.ts";
import { SHARED_ERRORS } from "../errors/connect-errors.ts";
import { requestContextOf } from "../request-context.ts";
import type { Gate } from "./gate.ts";

/** RPCs that must work under overload. WatchRevocations (the revocation feed) is among them, because it is expensive only at its start. */
const URGENT: ReadonlySet<string> = new Set([
  "Logout",
  "LogoutByCookie",
  "RevokeSession",
  "RevokeOtherSessions",
  "RevokeSubjectSessions",
  "RevokeAllSessions",
  "RevokeToken",
  "RevokeGlobally",
  // They may take a right away, as the end of a session does.
  "UpdateSession",
  "UpdateSubjectSessions",
  "WatchRevocations",
]);

/** RPCs that present a refresh token. The rules of rotation forbid processing such a request late. */
const ROTATIONS: ReadonlySet<string> = new Set(["Refresh", "GrantToken", "RegisterDevice", "RenewDevice"]);

/** How long a request may have waited in this process, in ms. Requests that have waited longer are refused. */
type CallTolerances = { readonly rotationMs: number; readonly othersMs: number };

/** @param accept returns whether an ordinary call is accepted now */
export function admissionControl(accept: () => boolean, tolerances: CallTolerances): Gate {
  return (context) => {
    const { method } = context;
    if (method.parent.typeName === Health.typeName) return undefined;
    const { waitMs } = requestContextOf(context);
    // The tolerances do not apply to streams, which continue to do work long after their request was sent.
    if (waitMs > 0 && method.methodKind === "unary") {
      const isRotation = ROTATIONS.has(method.name);
      if (waitMs > (isRotation ? tolerances.rotationMs : tolerances.othersMs)) return SHARED_ERRORS.stalled;
    }
    return URGENT.has(method.name) || accept() ? undefined : SHARED_ERRORS.overloaded;
  };
}
