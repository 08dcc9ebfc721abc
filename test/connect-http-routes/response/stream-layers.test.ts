/** The layers between a stream of messages and its socket. */
import { constants, gunzipSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { ResponseStream } from "../../../src/connect-http-routes/call/exchange.ts";
import { compressStream } from "../../../src/connect-http-routes/node/gzip.ts";
import { withHeartbeat } from "../../../src/connect-http-routes/response/stream-layers.ts";

/** Returns a response that records the calls to it. While `state.holds` is set, a write lasts until `state.release` is called. */
function recorded() {
  const steps: string[] = [];
  const bytes: Uint8Array[] = [];
  const state = { holds: false, fails: false, release: () => {} };
  const ended = Promise.withResolvers<void>();
  const response: ResponseStream = {
    flush: () => void steps.push("flush"),
    async write(chunk) {
      steps.push(`write ${typeof chunk === "string" ? chunk : chunk.byteLength}`);
      if (typeof chunk !== "string") bytes.push(chunk);
      if (state.fails) throw new Error("the client has disconnected");
      if (state.holds) await new Promise<void>((resolve) => Object.assign(state, { release: resolve }));
    },
    end() {
      steps.push("end");
      ended.resolve();
    },
    abort: () => void steps.push("abort"),
  };
  return { response, steps, bytes, state, ended: ended.promise };
}

describe("heartbeats", () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  });
  afterEach(() => {
    expect(vi.getTimerCount()).toBe(0);
    vi.useRealTimers();
  });

  test("come whenever nothing was written for an interval, until the end", async () => {
    const { response, steps } = recorded();
    const layer = withHeartbeat(response, ":", 1_000);
    await vi.advanceTimersByTimeAsync(2_000);
    expect(steps.splice(0)).toEqual(["write :", "write :"]);
    await vi.advanceTimersByTimeAsync(900);
    await layer.write("a");
    await vi.advanceTimersByTimeAsync(999);
    expect(steps.splice(0)).toEqual(["write a"]);
    await vi.advanceTimersByTimeAsync(1);
    layer.flush();
    layer.end();
    await vi.advanceTimersByTimeAsync(5_000);
    expect(steps).toEqual(["write :", "flush", "end"]);
  });

  test("do not come while a client reads slowly", async () => {
    const { response, steps, state } = recorded();
    const layer = withHeartbeat(response, ":", 1_000);
    state.holds = true;
    const written = layer.write("a");
    await vi.advanceTimersByTimeAsync(5_000);
    expect(steps.splice(0)).toEqual(["write a"]);
    state.holds = false;
    state.release();
    await written;
    await vi.advanceTimersByTimeAsync(1_000);
    expect(steps).toEqual(["write :"]);
    layer.end();
  });

  test("end with a response that is aborted, or cannot be written", async () => {
    const { response, steps, state } = recorded();
    withHeartbeat(response, ":", 1_000).abort();
    await vi.advanceTimersByTimeAsync(5_000);
    expect(steps.splice(0)).toEqual(["abort"]);
    state.fails = true;
    const layer = withHeartbeat(response, ":", 1_000);
    await vi.advanceTimersByTimeAsync(5_000);
    expect(steps).toEqual(["write :"]);
    await expect(layer.write("a")).rejects.toThrow("disconnected");
    await vi.advanceTimersByTimeAsync(1_000);
    layer.abort();
  });

  test("are left out without a comment or an interval", () => {
    const { response } = recorded();
    expect(withHeartbeat(response, undefined, 1_000)).toBe(response);
    expect(withHeartbeat(response, ":", undefined)).toBe(response);
    expect(withHeartbeat(response, ":", 0)).toBe(response);
  });
});

describe("compression", () => {
  const unzipped = (bytes: readonly Uint8Array[]) =>
    gunzipSync(Buffer.concat(bytes), { finishFlush: constants.Z_SYNC_FLUSH }).toString();

  test("lets every message arrive at once", async () => {
    const { response, steps, bytes, ended } = recorded();
    const layer = compressStream(response);
    layer.flush();
    await layer.write("one ");
    expect(unzipped(bytes)).toBe("one ");
    await layer.write("two");
    expect(unzipped(bytes)).toBe("one two");
    layer.end();
    await ended;
    expect(gunzipSync(Buffer.concat(bytes)).toString()).toBe("one two");
    expect(steps.at(0)).toBe("flush");
    expect(steps.at(-1)).toBe("end");
  });

  test("of a response that is aborted takes no more, and says so", async () => {
    const { response, steps } = recorded();
    const layer = compressStream(response);
    layer.abort();
    await expect(layer.write("a")).rejects.toThrow();
    expect(steps).toEqual(["abort"]);
  });
});
