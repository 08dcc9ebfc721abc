import { Code, ConnectError } from "@connectrpc/connect";
import { timedOut } from "../call/errors.ts";
import { isForwardedToClients } from "./metadata.ts";

/** Codes that a transport gives to failures of its connection, beside `unavailable`. */
const CONNECTION_CODES: ReadonlySet<Code> = new Set([Code.Aborted, Code.Canceled, Code.Internal, Code.Unknown]);

/** The upstream's timer may fire this much earlier than the timer of this process, in milliseconds, because timers are rounded. */
const EARLY_MS = 5;

interface FailedCall {
  /** The signal of the client's call. Once it is aborted, its reason is the error. */
  readonly signal: AbortSignal;
  /** Returns the time left of the deadline, in milliseconds. */
  readonly leftMs: number;
  /** Whether the error occurred while the response was read, and all request messages could be read. Default: false. */
  readonly isOfResponse?: boolean;
}

/**
 * Converts an error of a transport. A status that the upstream has sent keeps its code, message, details and metadata. A refused, lost or
 * reset connection becomes `unavailable` (503), without its text, which may name internal hosts. After the deadline the error is
 * `deadline_exceeded` (504), whatever the upstream sends: some reset the stream, some send CANCELLED.
 */
export function fromUpstream(
  reason: unknown,
  { signal, leftMs, isOfResponse = false }: FailedCall,
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
  // connect-es reports a truncated response with the code `invalid_argument`, as if the client had sent the message.
  const isCut = isOfResponse && error.code === Code.InvalidArgument;
  if (error.code === Code.Unavailable || CONNECTION_CODES.has(error.code) || isCut) {
    return new ConnectError("the upstream is unavailable", Code.Unavailable, undefined, undefined, reason);
  }
  return error;
}

/** The error is copied, because handlers do not send the metadata of an error that was received from a server. */
function fromStatus(error: ConnectError): ConnectError {
  const metadata = new Headers();
  for (const [name, value] of error.metadata) if (isForwardedToClients(name)) metadata.append(name, value);
  const forwarded = new ConnectError(error.rawMessage, error.code, metadata);
  forwarded.details = error.details;
  return forwarded;
}
