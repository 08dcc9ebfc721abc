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

/**
 * @param onRecovered called when the stream accepts lines again, with the number of lines lost since the last call
 * @param when calls `write` now or soon, which writes all lines so far. With `setImmediate` the lines of one turn of the event loop are
 *   written together, because a system call for each takes longer than everything else that is done for a line
 */
export function createLineSink(
  stream: Target,
  onRecovered: (lines: number) => void,
  when: (write: () => void) => unknown = (write) => write(),
): LineSink {
  let lost = 0;
  let reported = 0;
  let batch = { text: "", lines: 0 };
  const writeBatch = () => {
    const { text, lines } = batch;
    if (lines === 0) return;
    batch = { text: "", lines: 0 };
    stream.write(text, (error) => {
      if (error) lost += lines;
      else if (lost > reported && stream.writableLength < MAX_BUFFERED_BYTES / 2) {
        const lostSince = lost - reported;
        reported = lost;
        onRecovered(lostSince);
      }
    });
  };
  // The reader has disconnected (EPIPE) or a disk is full. The callback of the write counts the lost lines.
  stream.on("error", () => {});
  return {
    write(line) {
      if (stream.writableLength + batch.text.length + line.length > MAX_BUFFERED_BYTES) {
        lost++;
        return;
      }
      batch.text += line;
      if (batch.lines++ === 0) when(writeBatch);
    },
    get lost() {
      return lost;
    },
    async flush(timeoutMs) {
      const { promise: late, resolve } = Promise.withResolvers<"late">();
      const timer = setTimeout(resolve, timeoutMs, "late");
      // What is written may add a line: that lines were lost.
      do {
        writeBatch();
        // The stream calls this back after all earlier writes.
        const written = new Promise((done) => (stream.writableLength === 0 ? done(null) : stream.write("", done)));
        if ((await Promise.race([late, written])) === "late") break;
      } while (batch.lines > 0 || stream.writableLength > 0);
      clearTimeout(timer);
    },
  };
}
