import { constants, createGzip } from "node:zlib";
import type { ResponseStream } from "../call/exchange.ts";

/** Compresses a response; each write is flushed, so that every message arrives at once. */
export function withGzip(response: ResponseStream): ResponseStream {
  const gzip = createGzip({ flush: constants.Z_SYNC_FLUSH });
  let output: Buffer[] = [];
  gzip.on("data", (bytes: Buffer) => output.push(bytes));
  // A write after `abort`; its callback reports it.
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

/**
 * Writes a comment whenever nothing else was written for an interval, so that proxies keep an idle stream open and a
 * disconnected client is detected.
 * @param comment undefined if the format has none
 * @param intervalMs undefined or 0: never
 */
export function withHeartbeat(
  response: ResponseStream,
  comment: string | undefined,
  intervalMs: number | undefined,
): ResponseStream {
  if (comment === undefined || !intervalMs) return response;
  let pending = 0;
  const write = async (chunk: string | Uint8Array) => {
    pending++;
    try {
      await response.write(chunk);
    } finally {
      pending--;
      timer.refresh();
    }
  };
  const timer = setInterval(() => {
    // A slow client has unread output anyway.
    if (pending === 0) write(comment).catch(() => clearInterval(timer));
  }, intervalMs);
  return {
    flush: () => response.flush(),
    write,
    end() {
      clearInterval(timer);
      response.end();
    },
    abort() {
      clearInterval(timer);
      response.abort();
    },
  };
}
