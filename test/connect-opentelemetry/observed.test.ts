/** A stream may end in several ways. Each of them is reported once. */
import { Code, ConnectError } from "@connectrpc/connect";
import { ROOT_CONTEXT } from "@opentelemetry/api";
import { expect, test } from "vitest";
import { observed } from "../../src/connect-opentelemetry/observed.ts";

function watch(messages: AsyncIterable<number>) {
  const leaving = new AbortController();
  const ends: (Code | undefined)[] = [];
  const watched = observed(messages, leaving.signal, ROOT_CONTEXT, (error) => ends.push(error?.code));
  return { leaving, ends, watched, iterator: watched[Symbol.asyncIterator]() };
}

async function* numbers(left: () => void = () => {}) {
  try {
    yield 1;
    yield 2;
  } finally {
    left();
  }
}

/** An iterator without the optional methods `return` and `throw`. */
const bare: AsyncIterable<number> = {
  [Symbol.asyncIterator]: () => ({ next: async () => ({ done: false, value: 1 }) }),
};

test("by its last message, without an error", async () => {
  const { leaving, ends, watched } = watch(numbers());
  const seen: number[] = [];
  for await (const number of watched) {
    expect(ends).toEqual([]);
    seen.push(number);
  }
  leaving.abort();
  expect({ seen, ends }).toEqual({ seen: [1, 2], ends: [undefined] });
});

test("by a loop that leaves it, as canceled, and its source learns of that", async () => {
  let left = 0;
  const { ends, watched } = watch(numbers(() => left++));
  for await (const _ of watched) break;
  expect({ left, ends }).toEqual({ left: 1, ends: [Code.Canceled] });
});

test("by a failure, with its code", async () => {
  const failing: AsyncIterable<number> = {
    [Symbol.asyncIterator]: () => ({ next: () => Promise.reject(new ConnectError("", Code.NotFound)) }),
  };
  const { ends, iterator } = watch(failing);
  await expect(iterator.next()).rejects.toThrow(ConnectError);
  expect(ends).toEqual([Code.NotFound]);
});

test("by an abort before it is read, with the reason where Connect gives one", () => {
  const aborted = watch(numbers());
  aborted.leaving.abort(new ConnectError("", Code.DeadlineExceeded));
  expect(aborted.ends).toEqual([Code.DeadlineExceeded]);
  const left = watch(numbers());
  left.leaving.abort();
  expect(left.ends).toEqual([Code.Canceled]);
  const ends: unknown[] = [];
  observed(numbers(), AbortSignal.abort(), ROOT_CONTEXT, (error) => ends.push(error?.code));
  expect(ends).toEqual([Code.Canceled]);
});

test("by an error that is thrown into it, which its source sees where it can", async () => {
  let left = 0;
  const error = new ConnectError("", Code.Aborted);
  const { ends, iterator } = watch(numbers(() => left++));
  await iterator.next();
  await expect(iterator.throw?.(error)).rejects.toBe(error);
  expect({ left, ends }).toEqual({ left: 1, ends: [Code.Aborted] });
});

test("by an error that is thrown into it, when its source can only be left", async () => {
  const left: string[] = [];
  const source: AsyncIterable<number> = {
    [Symbol.asyncIterator]: () => ({
      next: async () => ({ done: false, value: 1 }),
      return: async () => {
        left.push("left");
        return { done: true, value: undefined };
      },
    }),
  };
  const { ends, iterator } = watch(source);
  const error = new ConnectError("", Code.Aborted);
  await expect(iterator.throw?.(error)).rejects.toBe(error);
  expect({ left, ends }).toEqual({ left: ["left"], ends: [Code.Aborted] });
});

test("of an iterator that can neither be left nor be thrown into", async () => {
  const left = watch(bare);
  expect(await left.iterator.return?.(7)).toEqual({ done: true, value: 7 });
  expect(left.ends).toEqual([Code.Canceled]);
  const thrown = watch(bare);
  const error = new Error("thrown");
  await expect(thrown.iterator.throw?.(error)).rejects.toBe(error);
  expect(thrown.ends).toEqual([Code.Internal]);
});
