import { Writable } from "node:stream";
import { expect, test } from "vitest";
import { createLineSink, MAX_BUFFERED_BYTES } from "../../../src/platform/log/line-sink.ts";

/** Returns a stream whose reader takes nothing until `take` is called, or fails with the given error. */
function stalled() {
  const pending: [text: string, done: (error?: Error) => void][] = [];
  const taken: string[] = [];
  let closed = false;
  const stream = new Writable({
    decodeStrings: false,
    autoDestroy: false,
    write: (text: string, _encoding, done) => void pending.push([text, done]),
  });
  return {
    stream,
    taken,
    async take(error?: Error) {
      await settle();
      for (closed = error !== undefined; pending.length > 0; await settle()) {
        const [text, done] = pending.shift() as (typeof pending)[number];
        if (!closed) taken.push(text);
        done(error);
      }
    },
  };
}

const settle = () => new Promise((resolve) => setImmediate(resolve));
const LINE = `${"x".repeat(1023)}\n`;

test("a reader that stalls costs lines, not memory, and learns how many when it is back", async () => {
  const { stream, taken, take } = stalled();
  const reports: number[] = [];
  const sink = createLineSink(stream, (lines) => reports.push(lines));
  for (let line = 0; line < 5000; line++) {
    sink.write(LINE);
    if (line % 100 === 0) await settle();
  }
  expect(stream.writableLength).toBe(MAX_BUFFERED_BYTES);
  expect(sink.lost).toBe(5000 - 1024);
  await take();
  expect(taken.join("")).toBe(LINE.repeat(1024));
  expect(reports).toEqual([5000 - 1024]);
});

test("a reader that leaves costs the lines that were written to it", async () => {
  const { stream, take } = stalled();
  const sink = createLineSink(stream, () => {});
  sink.write(LINE);
  sink.write(LINE);
  await take(Object.assign(new Error("write EPIPE"), { code: "EPIPE" }));
  expect(sink.lost).toBe(2);
});

test("a flush waits until all is written", async () => {
  const { stream, taken, take } = stalled();
  const sink = createLineSink(stream, () => {}, setImmediate);
  await sink.flush(60_000);
  sink.write(LINE);
  sink.write(LINE);
  // The lines of a turn are one write, and the flush waits for another one after it.
  const flushed = sink.flush(60_000).then(() => taken.length);
  await take();
  expect(await flushed).toBe(2);
  expect(taken).toEqual([LINE + LINE, ""]);
});

test.each([
  ["at once", undefined],
  ["by turn", setImmediate],
])("a flush writes also what the reader learns by it, %s: that lines were lost", async (_, when) => {
  const { stream, taken, take } = stalled();
  const sink = createLineSink(stream, (lines) => sink.write(`lost ${lines}\n`), when);
  sink.write("x".repeat(MAX_BUFFERED_BYTES));
  sink.write(LINE);
  const flushed = sink.flush(60_000).then(() => taken.join("").endsWith("lost 1\n"));
  await take();
  expect(await flushed).toBe(true);
});

test("a flush does not wait for a reader that stalls", async () => {
  const { stream } = stalled();
  const sink = createLineSink(stream, () => {});
  sink.write(LINE);
  await sink.flush(1);
  expect(stream.writableLength).toBeGreaterThan(0);
});
