import { Readable } from "node:stream";
import { promisify } from "node:util";
import { constants, createGunzip, gunzip as gunzipCallback, gzip as gzipCallback } from "node:zlib";
import { type BodyChunks, iterateChunks, ReadableChunks } from "../call/body-chunks.ts";
import { BadInput } from "../codec/bad-input.ts";
import { FailureError, failures } from "./failure.ts";

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
  try {
    return await gunzipAsync(body, { maxOutputLength: limit, finishFlush: constants.Z_FINISH });
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ERR_BUFFER_TOO_LARGE") {
      throw new FailureError(failures.tooLarge(limit));
    }
    throw new BadInput("body", undefined, "not gzip");
  }
}

/** Decodes the Content-Encoding of a request that is read piece by piece. */
export function decompressChunks(body: BodyChunks, encoding: string): BodyChunks {
  if (!isGzip(encoding)) return body;
  const gunzip = createGunzip();
  const source = Readable.from(iterateChunks(body), { objectMode: false });
  source.on("error", (error) => gunzip.destroy(error));
  const chunks = new ReadableChunks(source.pipe(gunzip), (error) =>
    error instanceof Error && "errno" in error ? new BadInput("body", undefined, "not gzip") : error,
  );
  return {
    next: () => chunks.next(),
    cancel(reason) {
      body.cancel(reason);
      chunks.cancel(reason);
      gunzip.destroy();
    },
  };
}

/** @throws FailureError for encodings other than gzip and identity */
function isGzip(encoding: string): boolean {
  const name = encoding.trim().toLowerCase();
  if (name === "" || name === "identity") return false;
  if (name === "gzip" || name === "x-gzip") return true;
  throw new FailureError(failures.unsupportedMediaType(`the content encoding ${encoding} is not supported, gzip is`));
}
