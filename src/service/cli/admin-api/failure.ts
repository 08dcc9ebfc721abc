/** Interprets a failed call of the admin API: the message, the exit code, and whether to call again. */
import { Code, ConnectError } from "@connectrpc/connect";
import { SessionLimitExceededSchema } from "../../../../gen/auth/admin/v1/session_admin_pb.ts";
import { ErrorDetailSchema } from "../../../../gen/auth/v1/session_pb.ts";
import { errorCode } from "../../../platform/files/error-code.ts";
import { CommandError, EXIT, type ExitCode } from "../context.ts";
import type { AdminCredential } from "./credential.ts";

/**
 * - `passing`: the same call may succeed later.
 * - `refused`: this call will never succeed, but others may.
 * - `lasting`: no call will succeed until somebody changes something.
 */
type FailureKind = "passing" | "refused" | "lasting";

export class CallFailure extends CommandError {
  readonly code: Code;
  readonly kind: FailureKind;
  /** How long the service asks its callers to wait, in ms. */
  readonly retryAfterMs: number;

  constructor(code: Code, message: string, exitCode: ExitCode, kind: FailureKind, retryAfterMs = 0) {
    super(message, exitCode);
    this.code = code;
    this.kind = kind;
    this.retryAfterMs = retryAfterMs;
  }
}

export function callFailure(error: unknown, url: string, credential: AdminCredential | undefined): CommandError {
  if (error instanceof CommandError) return error;
  const failed = ConnectError.from(error);
  const [message, exitCode, kind] = meaningOf(failed, url, credential ?? { from: "the client certificate" });
  const waitMs = retryAfterMs(failed.metadata.get("retry-after"), Date.now());
  return new CallFailure(failed.code, message, exitCode, kind, waitMs);
}

type Meaning = readonly [message: string, exitCode: ExitCode, kind: FailureKind];

function meaningOf(error: ConnectError, url: string, { from, remedy }: Omit<AdminCredential, "token">): Meaning {
  switch (error.code) {
    case Code.Unauthenticated:
      return [
        `${url} does not accept the credential (${from})${remedy ? `: ${remedy}` : ""}`,
        EXIT.notAllowed,
        "lasting",
      ];
    case Code.PermissionDenied:
      return [`${url} does not allow this to the credential (${from}): it lacks a scope`, EXIT.notAllowed, "lasting"];
    case Code.Unavailable:
    case Code.DeadlineExceeded:
    case Code.Aborted:
      if (detailOf(error) === "E409_CONFLICT") return [error.rawMessage, EXIT.failed, "refused"];
      return [
        `${url} ${hasResponded(error) ? "responds" : "does not respond"}: ${error.rawMessage}`,
        EXIT.unavailable,
        "passing",
      ];
    case Code.Internal:
      if (errorCode(error.cause) === "EPROTO")
        return [`${url} does not speak TLS: is it http?`, EXIT.failed, "lasting"];
      break;
    case Code.Unimplemented:
      return [`${url} has no such method: is it the admin API?`, EXIT.failed, "lasting"];
    case Code.InvalidArgument:
      return [error.rawMessage, EXIT.usage, "refused"];
    case Code.ResourceExhausted:
      return [
        error.rawMessage + liveOf(error),
        EXIT.failed,
        detailOf(error) === "E429_RATE_LIMITED" ? "passing" : "refused",
      ];
    case Code.NotFound:
    case Code.FailedPrecondition:
      return [error.rawMessage, EXIT.failed, "refused"];
  }
  // An internal error of the service may be temporary. An error without the detail that the service adds comes from another program, so
  // other calls will fail as well.
  const kind = detailOf(error) === undefined ? "lasting" : "passing";
  return [`${url}: ${error.rawMessage} (${Code[error.code]})`, EXIT.failed, kind];
}

/** Returns whether an error comes from a response. Any response has headers, which an error without a response lacks. */
const hasResponded = ({ metadata }: ConnectError) => !metadata.keys().next().done;

const detailOf = (error: ConnectError) => error.findDetails(ErrorDetailSchema)[0]?.code;

/** Returns the sessions because of which a limit refuses another one, as the end of a message. */
function liveOf(error: ConnectError): string {
  const [exceeded] = error.findDetails(SessionLimitExceededSchema);
  const ids = exceeded?.sessions.map(({ sessionId }) => sessionId) ?? [];
  return ids.length === 0 ? "" : `: end one of them, the least recently used first: ${ids.join(" ")}`;
}

/** Returns the wait in ms that `Retry-After` names, in seconds or as a date (RFC 9110 section 10.2.3). */
function retryAfterMs(value: string | null, nowMs: number): number {
  if (value === null) return 0;
  const ms = /^\d{1,9}$/.test(value) ? Number(value) * 1000 : Date.parse(value) - nowMs;
  return Number.isNaN(ms) ? 0 : Math.max(0, ms);
}
