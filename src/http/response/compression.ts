import { Readable } from "node:stream";
import { promisify } from "node:util";
import { constants, createGunzip, gunzip as gunzipCallback, gzip as gzipCallback } from "node:zlib";
import { type BodyChunks, iterateChunks, ReadableChunks } from "../call/body-chunks.ts";
import { BadInput } from "../codec/bad-input.ts";
import { FailureError, failures } from "./failure.ts";

/** How many times its size a body may become; JSON is rarely compressed to less than a thirtieth. */
const MAX_RATIO = 100;
/** What any body may become, in bytes. */
const FREE_BYTES = 64 * 1024;

const gunzipAsync = promisify(gunzipCallback);

/** Compresses the content of a response. */
export const gzip: (content: string | Uint8Array) => Promise<Uint8Array> = promisify(gzipCallback);

/**
 * Decodes the Content-Encoding of a request.
 * @param limit maximum size of the decompressed body, in bytes
 * @throws FailureError, BadInput
 */
export async function decompress(body: Uint8Array, encoding: string, limit: number): Promise<Uint8Array> {
  if (!isGzip(encoding) || body.byteLength === 0) return body;
  const allowed = Math.min(limit, mayBecome(body.byteLength));
  try {
    return await gunzipAsync(body, { maxOutputLength: allowed, finishFlush: constants.Z_FINISH });
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ERR_BUFFER_TOO_LARGE") {
      throw new FailureError(allowed < limit ? failures.expandsTooMuch(MAX_RATIO) : failures.tooLarge(limit));
    }
    throw new BadInput("body", undefined, "not gzip");
  }
}

/** Decodes the Content-Encoding of a request that is read piece by piece. */
export function decompressChunks(body: BodyChunks, encoding: string): BodyChunks {
  if (!isGzip(encoding)) return body;
  const gunzip = createGunzip();
  let [received, expanded] = [0, 0];
  const count = (chunk: Uint8Array) => {
    received += chunk.byteLength;
  };
  const source = Readable.from(iterateChunks(body, count), { objectMode: false });
  source.on("error", (error) => gunzip.destroy(error));
  const chunks = new ReadableChunks(source.pipe(gunzip), (error) =>
    error instanceof Error && "errno" in error ? new BadInput("body", undefined, "not gzip") : error,
  );
  return {
    async next() {
      const chunk = await chunks.next();
      expanded += chunk?.byteLength ?? 0;
      if (expanded > mayBecome(received)) throw new FailureError(failures.expandsTooMuch(MAX_RATIO));
      return chunk;
    },
    cancel(reason) {
      body.cancel(reason);
      chunks.cancel(reason);
      gunzip.destroy();
    },
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
  throw new FailureError(failures.unsupportedMediaType(`the content encoding ${encoding} is not supported, gzip is`));
}
