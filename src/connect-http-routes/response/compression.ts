import type { BodyChunks } from "../call/body-chunks.ts";
import type { Gzip } from "../call/exchange.ts";
import { BadInput } from "../codec/bad-input.ts";
import { FailureError, failures } from "./failure.ts";

/** The factor by which a body may grow when it is decompressed. JSON is rarely compressed to less than a thirtieth. */
const MAX_RATIO = 100;
/** Every body may grow to this size, in bytes, whatever the ratio. */
const FREE_BYTES = 64 * 1024;

/**
 * Decodes the Content-Encoding of a request.
 * @param limit maximum size of the decompressed body, in bytes
 * @throws FailureError, BadInput
 */
export async function decompress(gzip: Gzip, body: Uint8Array, encoding: string, limit: number): Promise<Uint8Array> {
  if (!isGzip(encoding) || body.byteLength === 0) return body;
  const allowed = Math.min(limit, mayBecome(body.byteLength));
  const expanded = await gzip.expand(body, allowed).catch(() => {
    throw new BadInput("body", undefined, "not gzip");
  });
  if (expanded !== undefined) return expanded;
  throw new FailureError(allowed < limit ? failures.expandsTooMuch(MAX_RATIO) : failures.tooLarge(limit));
}

/** Decodes the Content-Encoding of a request that is read piece by piece. */
export function decompressChunks(gzip: Gzip, body: BodyChunks, encoding: string): BodyChunks {
  if (!isGzip(encoding)) return body;
  let [received, expanded] = [0, 0];
  const chunks = gzip.expandChunks({
    async next() {
      const chunk = await body.next();
      received += chunk?.byteLength ?? 0;
      return chunk;
    },
    cancel: (reason) => body.cancel(reason),
  });
  return {
    async next() {
      const chunk = await chunks.next();
      expanded += chunk?.byteLength ?? 0;
      if (expanded > mayBecome(received)) throw new FailureError(failures.expandsTooMuch(MAX_RATIO));
      return chunk;
    },
    cancel: (reason) => chunks.cancel(reason),
  };
}

function mayBecome(compressedBytes: number): number {
  return Math.max(FREE_BYTES, compressedBytes * MAX_RATIO);
}

/** @throws FailureError for encodings other than gzip and identity */
function isGzip(encoding: string): boolean {
  const name = encoding.trim().toLowerCase();
  if (name === "" || name === "identity") return false;
  if (name === "gzip" || name === "x-gzip") return true;
  throw new FailureError(failures.unsupportedEncoding(encoding));
}
