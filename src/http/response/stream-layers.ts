import type { ResponseStream } from "../call/exchange.ts";

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
