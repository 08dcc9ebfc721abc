import { afterEach, expect, test, vi } from "vitest";
import { Call } from "../../../src/connect-http-routes/call/call.ts";
import type { Exchange } from "../../../src/connect-http-routes/call/exchange.ts";
import { HeaderMap } from "../../../src/connect-http-routes/call/header-map.ts";
import { RichService } from "../gen/rich/v1/rich_pb.ts";

const exchange = {
  ...{ method: "POST", url: "http://127.0.0.1/", headers: new HeaderMap(), onAbort: () => () => {} },
} as unknown as Exchange<unknown>;

afterEach(() => void vi.useRealTimers());

test.each([-3_600_000, 3_600_000])("the clock is set by %i ms: the timeout stays as long as it was", (changeMs) => {
  vi.useFakeTimers({ toFake: ["Date", "performance", "setTimeout", "clearTimeout"] });
  const options = { timeoutMs: 1000, shutdownSignal: undefined, contextValues: undefined };
  const call = new Call(RichService.method.misbehave, exchange, options);
  vi.advanceTimersByTime(400);
  vi.setSystemTime(Date.now() + changeMs);
  expect(call.timeoutMs()).toBe(600);
  // The timer starts here, because the implementation asks for the signal only now.
  const { signal } = call;
  vi.advanceTimersByTime(599);
  expect(signal.aborted).toBe(false);
  vi.advanceTimersByTime(1);
  expect([signal.aborted, call.timeoutMs()]).toEqual([true, 0]);
});
