import { Readable } from "node:stream";
import { promisify } from "node:util";
import { constants, createGunzip, createGzip, gunzip as gunzipCallback, gzip as gzipCallback } from "node:zlib";
import type { BodyChunks } from "../call/body-chunks.ts";
import type { Gzip, ResponseStream } from "../call/exchange.ts";
import { BadInput } from "../codec/bad-input.ts";
import { ReadableChunks } from "./readable-chunks.ts";

const compress: Gzip["compress"] = promisify(gzipCallback);
const gunzip = promisify(gunzipCallback);

/** gzip by node:zlib, on its thread pool. */
export const nodeGzip: Gzip = { compress, expand, expandChunks, compressStream };

async function expand(content: Uint8Array, maxBytes: number): Promise<Uint8Array | undefined> {
  try {
    return await gunzip(content, { maxOutputLength: maxBytes, finishFlush: constants.Z_FINISH });
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ERR_BUFFER_TOO_LARGE") return undefined;
    throw error;
  }
}

function expandChunks(body: BodyChunks): BodyChunks {
  const expander = createGunzip();
  const source = Readable.from(iterate(body), { objectMode: false });
  source.on("error", (error) => expander.destroy(error));
  const chunks = new ReadableChunks(source.pipe(expander), (error) =>
    error instanceof Error && "errno" in error ? new BadInput("body", undefined, "not gzip") : error,
  );
  return {
    next: () => chunks.next(),
    cancel(reason) {
      body.cancel(reason);
      chunks.cancel(reason);
      expander.destroy();
    },
  };
}

async function* iterate(chunks: BodyChunks): AsyncGenerator<Uint8Array> {
  for (let chunk = await chunks.next(); chunk !== undefined; chunk = await chunks.next()) yield chunk;
}

export function compressStream(response: ResponseStream): ResponseStream {
  const gzip = createGzip({ flush: constants.Z_SYNC_FLUSH });
  let output: Buffer[] = [];
  gzip.on("data", (bytes: Buffer) => output.push(bytes));
  // An `error` event without a listener would end the process. The error is already reported by the callback of the failed write.
  gzip.on("error", () => undefined);
  const takeOutput = () => {
    const bytes = Buffer.concat(output);
    output = [];
    return bytes;
  };
  return {
    flush: () => response.flush(),
    async write(chunk) {
      await new Promise<void>((resolve, reject) => {
        gzip.write(chunk, (error) => (error ? reject(error) : resolve()));
      });
      await response.write(takeOutput());
    },
    end() {
      gzip.once("end", () => {
        response.write(takeOutput()).then(
          () => response.end(),
          () => undefined,
        );
      });
      gzip.end();
    },
    abort() {
      gzip.destroy();
      response.abort();
    },
  };
}
