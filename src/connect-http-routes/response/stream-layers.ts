import type { ResponseStream } from "../call/exchange.ts";

/**
 * Writes `comment` whenever nothing else was written for `intervalMs`, which keeps an idle stream open in proxies and detects a client that
 * has disconnected. Writes none if the format has no comments, or if `intervalMs` is undefined or 0.
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
    // A slow client still has output to read, so it needs no comment.
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
