/** Errors that several protocols and servers send. */
import { Code, ConnectError } from "@connectrpc/connect";

/** Returns the error that a client receives for a thrown value that is not a ConnectError. */
export function internalError(reason: unknown): ConnectError {
  return new ConnectError("internal error", Code.Internal, undefined, undefined, reason);
}

export function clientDisconnected(): ConnectError {
  return new ConnectError("the client closed the request", Code.Canceled);
}

export function timedOut(): ConnectError {
  return new ConnectError("the operation timed out", Code.DeadlineExceeded);
}
