import { Code, ConnectError } from "@connectrpc/connect";
import { isForwardedToClients } from "./metadata.ts";

/** Codes that a transport gives to failures of its connection, beside `unavailable`. */
const CONNECTION_CODES: ReadonlySet<Code> = new Set([Code.Aborted, Code.Canceled, Code.Internal, Code.Unknown]);

/** How much earlier than ours the timer of an upstream may fire, in milliseconds: timers are rounded. */
const EARLY_MS = 5;

/** The call that failed. */
export interface FailedCall {
  /** Of the client's call: its reason wins once it is aborted. */
  readonly signal: AbortSignal;
  /** What is left of the deadline, in milliseconds. */
  readonly leftMs: number;
}

/**
 * Converts an error of a transport. A status that the upstream has sent keeps code, message, details and metadata. A
 * connection that is refused, lost or reset is `unavailable` (503), without its text: it may name internal hosts. After the deadline it is
 * `deadline_exceeded` (504), whatever the upstream makes of it: some reset the stream, some send CANCELLED.
 */
export function fromUpstream(
  reason: unknown,
  { signal, leftMs }: FailedCall,
  onUpstreamError: ((error: unknown) => void) | undefined,
): ConnectError {
  const error = ConnectError.from(reason, Code.Internal);
  const isStatus = error.isWireError && error.code !== Code.Canceled;
  const expired = leftMs <= (isStatus ? 0 : EARLY_MS);
  if (expired && !signal.aborted && error.code !== Code.DeadlineExceeded) return timedOut();
  if (error.isWireError) return fromStatus(error);
  if (signal.aborted) return ConnectError.from(signal.reason, Code.Canceled);
  if (error.code === Code.DeadlineExceeded) return error;
  onUpstreamError?.(reason);
  if (error.code === Code.Unavailable || CONNECTION_CODES.has(error.code)) {
    return new ConnectError("the upstream is unavailable", Code.Unavailable, undefined, undefined, reason);
  }
  return error;
}

export function timedOut(): ConnectError {
  return new ConnectError("the operation timed out", Code.DeadlineExceeded);
}

export function isUnavailable(error: ConnectError): boolean {
  return error.code === Code.Unavailable;
}

/** A new error: those that come from the wire are not sent on by handlers. */
function fromStatus(error: ConnectError): ConnectError {
  const metadata = new Headers();
  for (const [name, value] of error.metadata) if (isForwardedToClients(name)) metadata.append(name, value);
  const forwarded = new ConnectError(error.rawMessage, error.code, metadata);
  forwarded.details = error.details;
  return forwarded;
}
