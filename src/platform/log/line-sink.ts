/**
 * The target of log lines: a stream whose reader may stall or disconnect. Neither may end the process, block its event loop or use an
 * unlimited amount of memory. Lines are lost instead, and their number is reported when the reader reads again.
 */
import type { Writable } from "node:stream";

/** How many bytes may wait for the reader. */
export const MAX_BUFFERED_BYTES = 1024 * 1024;

export type LineSink = {
  write(line: string): void;
  /** How many lines were lost so far, because the buffer was full or a write failed. */
  readonly lost: number;
  /** Waits until everything is written, for at most `timeoutMs`. */
  flush(timeoutMs: number): Promise<void>;
};

type Target = Pick<Writable, "write" | "writableLength" | "on" | "once" | "off">;

/** @param onRecovered called when the stream accepts lines again, with the number of lines lost since the last call */
export function createLineSink(stream: Target, onRecovered: (lines: number) => void): LineSink {
  let lost = 0;
  let reported = 0;
  /** All writes share one callback, so that nothing is allocated per line. */
  const onWritten = (error?: Error | null) => {
    if (error) lost++;
    else if (lost > reported && stream.writableLength < MAX_BUFFERED_BYTES / 2) {
      const lines = lost - reported;
      reported = lost;
      onRecovered(lines);
    }
  };
  // The reader has disconnected (EPIPE) or a disk is full. `onWritten` counts the lost lines.
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
      // The stream calls this back after all earlier writes.
      stream.write("", () => resolve());
      return promise.finally(() => clearTimeout(timer));
    },
  };
}
