/** Tests at which times commands for many users repeat failed calls. The test moves the clock. */
import { Code } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { CallFailure } from "../../../../src/service/cli/admin-api/failure.ts";
import { EXIT } from "../../../../src/service/cli/context.ts";
import { callForMany, type Timing } from "../../../../src/service/cli/sessions/many.ts";

describe("attempts", () => {
  const unavailable = (retryAfterMs = 0) =>
    new CallFailure(Code.Unavailable, "unavailable", EXIT.unavailable, "passing", retryAfterMs);

  /** Returns a clock whose time passes only during waits. */
  function timed(random = 0): Timing & { readonly waits: number[] } {
    let now = 0;
    const waits: number[] = [];
    return {
      waits,
      clock: () => now,
      sleep: async (ms) => {
        waits.push(ms);
        now += ms;
      },
      random: () => random,
    };
  }

  const patience = (retryForMs: number, notes: string[] = []) => ({
    retryForMs,
    signal: new AbortController().signal,
    note: (text: string) => void notes.push(text),
  });

  test("wait longer with each failure, up to a limit, and are reported once", async () => {
    const timing = timed();
    const notes: string[] = [];
    let failures = 7;
    const call = async () => {
      if (failures-- > 0) throw unavailable();
    };
    const { done, left } = await callForMany("ending", ["a"], call, patience(60_000, notes), timing);
    expect([done.length, left]).toEqual([1, []]);
    expect(timing.waits).toEqual([125, 250, 500, 1000, 2000, 2500, 2500]);
    expect(notes).toEqual(["unavailable; done: 0 of 1; trying again"]);
  });

  test("spread, and come no earlier than the service asks for", async () => {
    const timing = timed(0.999);
    let failures = 1;
    const call = async () => {
      if (failures-- > 0) throw unavailable(3_000);
    };
    await callForMany("ending", ["a"], call, patience(60_000), timing);
    expect(timing.waits).toEqual([expect.closeTo(3_250, -1)]);
  });

  test("end when nothing has succeeded for as long as they may go on", async () => {
    const timing = timed();
    const call = async (item: string) => {
      if (item === "broken") throw unavailable();
      return item;
    };
    const { done, left, failure } = await callForMany("ending", ["a", "broken", "b"], call, patience(10_000), timing);
    expect([done.map(({ item }) => item), left, failure?.message]).toEqual([["a", "b"], ["broken"], "unavailable"]);
    const total = timing.waits.reduce((sum, ms) => sum + ms, 0);
    expect(total).toBeGreaterThanOrEqual(10_000);
    expect(total).toBeLessThan(15_000);
  });

  test("end at once where the service asks for more time than they have", async () => {
    const timing = timed();
    const call = () => Promise.reject(unavailable(60_001));
    const { left } = await callForMany("ending", ["a"], call, patience(60_000), timing);
    expect([left, timing.waits]).toEqual([["a"], []]);
  });

  test("are none where they may not go on at all, also of a call that began before another one succeeded", async () => {
    const timing = timed();
    let ticks = 0;
    const succeeded = Promise.withResolvers<void>();
    const call = async (item: string) => {
      if (item === "a") return succeeded.resolve();
      await succeeded.promise;
      throw unavailable();
    };
    const { left } = await callForMany("ending", ["a", "b"], call, patience(0), {
      ...timing,
      clock: () => ticks++,
    });
    expect([left, timing.waits]).toEqual([["b"], []]);
  });

  test("are made once more after this process was stopped for longer than they may go on", async () => {
    let now = 0;
    let calls = 0;
    const timing = { ...timed(), clock: () => now };
    const call = async () => {
      calls++;
      if (calls > 1) return;
      now += 100_000;
      throw unavailable();
    };
    const { done } = await callForMany("ending", ["a"], call, patience(10_000), timing);
    expect(done).toHaveLength(1);
  });
});
