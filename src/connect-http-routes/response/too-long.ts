import { Code, ConnectError } from "@connectrpc/connect";

/** Returns the error for a response of more than `limit` bytes, the same as in connect-es. */
export function tooLong(length: number, limit: number): ConnectError {
  const text = `message size ${length} is larger than configured writeMaxBytes ${limit}`;
  return new ConnectError(text, Code.ResourceExhausted);
}
