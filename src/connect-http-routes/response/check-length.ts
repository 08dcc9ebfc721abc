import { Code, ConnectError } from "@connectrpc/connect";
import { utf8Length } from "../codec/bytes.ts";

/** Limits the size of a response. @returns its size in bytes @throws ConnectError the same as in connect-es */
export function checkLength(content: string | Uint8Array, limit: number): number {
  const length = typeof content === "string" ? utf8Length(content) : content.byteLength;
  if (length <= limit) return length;
  throw new ConnectError(
    `message size ${length} is larger than configured writeMaxBytes ${limit}`,
    Code.ResourceExhausted,
  );
}
