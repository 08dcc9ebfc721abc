/**
 * Where log lines go: a stream whose reader may stall or leave. Neither ends the process, blocks its event loop or
 * costs more memory than a bound: lines are lost instead, counted, and the count is reported once the reader is back.
 */
import type { Writable } from "node:stream";

/** What may wait for the reader, bytes. */
export const MAX_BUFFERED_BYTES = 1024 * 1024;

export type LineSink = {
  write(line: string): void;
  /** Lines lost so far: the buffer was full, or the write failed. */
  readonly lost: number;
  /** Waits until everything is written, at most `timeoutMs`. */
  flush(timeoutMs: number): Promise<void>;
};

type Target = Pick<Writable, "write" | "writableLength" | "on" | "once" | "off">;

/** @param onRecovered called with the lines lost since the last call, when the stream takes lines again */
export function createLineSink(stream: Target, onRecovered: (lines: number) => void): LineSink {
  let lost = 0;
  let reported = 0;
  /** One function for all writes: nothing is allocated per line. */
  const onWritten = (error?: Error | null) => {
    if (error) lost++;
    else if (lost > reported && stream.writableLength < MAX_BUFFERED_BYTES / 2) {
      const lines = lost - reported;
      reported = lost;
      onRecovered(lines);
    }
  };
  // A closed reader (EPIPE) or a full disk: counted by `onWritten`.
  stream.on("error", () => {});
  return {
    write(line) {
      if (stream.writableLength + line.length > MAX_BUFFERED_BYTES) lost++;
      else stream.write(line, onWritten);
    },
    get lost() {
      return lost;
    },
    flush(timeoutMs) {
      if (stream.writableLength === 0) return Promise.resolve();
      const { promise, resolve } = Promise.withResolvers<void>();
      const timer = setTimeout(resolve, timeoutMs);
      // Called back after all writes before it.
      stream.write("", () => resolve());
      return promise.finally(() => clearTimeout(timer));
    },
  };
}
