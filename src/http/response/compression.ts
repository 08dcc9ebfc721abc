import { promisify } from "node:util";
import { constants, gunzip as gunzipCallback, gzip as gzipCallback } from "node:zlib";
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
  const name = encoding.trim().toLowerCase();
  if (name === "" || name === "identity") return body;
  if (name !== "gzip" && name !== "x-gzip") {
    throw new FailureError(failures.unsupportedMediaType(`the content encoding ${encoding} is not supported, gzip is`));
  }
  if (body.byteLength === 0) return body;
  try {
    return await gunzipAsync(body, { maxOutputLength: limit, finishFlush: constants.Z_FINISH });
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ERR_BUFFER_TOO_LARGE") {
      throw new FailureError(failures.tooLarge(limit));
    }
    throw new BadInput("body", undefined, "not gzip");
  }
}
