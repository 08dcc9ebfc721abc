/** The limits of a single call, and the end of a verifier. */
import { once } from "node:events";
import { afterEach, expect, onTestFinished, test, vi } from "vitest";
import { Closing, limitCall, requireTimers } from "../../src/verifier/closing.ts";

afterEach(() => void vi.unstubAllGlobals());

test("a call is aborted when its time is up, with the reason", async () => {
  const { signal } = limitCall(undefined, 1, "it did not come");
  await once(signal, "abort");
  expect(signal.reason).toEqual(new Error("it did not come"));
});

test("a call is aborted when its verifier is closed, and everything else that ends with it", () => {
  const closing = new Closing();
  const call = limitCall(closing.toSignal(), 60_000, "late");
  const ended = vi.fn();
  closing.onClose(ended);
  expect([call.signal.aborted, closing.isClosed]).toEqual([false, false]);
  closing.close();
  closing.close();
  expect([call.signal.aborted, closing.isClosed, ended.mock.calls.length]).toEqual([true, true, 1]);
});

test.each([undefined, new AbortController().signal])("the end of a call releases what it holds", (closing) => {
  vi.useFakeTimers();
  try {
    const call = limitCall(closing, 60_000, "late");
    expect([call.signal.aborted, vi.getTimerCount()]).toEqual([false, 1]);
    call.end();
    expect([call.signal.aborted, vi.getTimerCount()]).toEqual([true, 0]);
  } finally {
    vi.useRealTimers();
  }
});

test("a runtime without timers is refused, with its own error as the cause", () => {
  expect(requireTimers).not.toThrow();
  const cause = new Error("no timers in the global scope");
  vi.stubGlobal("setTimeout", () => {
    throw cause;
  });
  expect(requireTimers).toThrow(expect.objectContaining({ name: "TypeError", cause }));
});

test("a runtime in which signals cannot be joined is refused, as that of Next.js's edge functions", () => {
  onTestFinished(() => void vi.restoreAllMocks());
  const cause = new TypeError("AbortSignal.any is not a function");
  vi.spyOn(AbortSignal, "any").mockImplementation(() => {
    throw cause;
  });
  expect(requireTimers).toThrow(expect.objectContaining({ name: "TypeError", cause }));
});
