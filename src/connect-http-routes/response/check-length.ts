import { Code, ConnectError } from "@connectrpc/connect";
import { byteLength } from "../codec/bytes.ts";

/** Limits the size of a response. @returns its size in bytes @throws ConnectError the same as in connect-es */
export function checkLength(content: string | Uint8Array, limit: number): number {
  const length = byteLength(content);
  if (length <= limit) return length;
  throw new ConnectError(
    `message size ${length} is larger than configured writeMaxBytes ${limit}`,
    Code.ResourceExhausted,
  );
}
