/** Scripts that compare times, run alone on a key of a Redis server, at the edges of their intervals. */
import { describe, expect, test } from "vitest";
import { ANY_TIME, NOW, redisOfTests, scripts } from "../../../support/store/still-redis.ts";

const PARTITION = "{00}";
const server = redisOfTests();

describe("the clock that instances share (sync.lua)", () => {
  const SLACK = 250;
  const STEP = 80_000;

  /** Reports that the clock was set, as an instance does. `before`: the shift, and when an instance last ran the script. */
  async function report(
    before: readonly [shift: number, seen: number],
    shift: number | "",
    from: number = NOW,
    until: number = NOW,
  ) {
    await server().admin.set(`${PARTITION}c`, before.join(" "));
    const reply = (await server().admin.eval(scripts.sync.text, 1, PARTITION, from, until, shift)) as string[];
    expect(reply[0]).toBe(String(NOW));
    return { shift: Number(reply[1]), inTime: reply[2] === "1", stored: await server().admin.get(`${PARTITION}c`) };
  }
  const agreed = (shift: number) => ({ shift, inTime: true, stored: `${shift} ${NOW}` });

  test("a step forward counts if no instance has run it since the step", async () => {
    // The last run was at the moment of the step: the clock has shown no time in between.
    expect(await report([0, NOW - STEP], STEP)).toEqual(agreed(STEP));
    expect(await report([0, NOW - STEP + SLACK], STEP)).toEqual(agreed(STEP));
    expect(await report([0, NOW - STEP + SLACK + 1], STEP)).toEqual(agreed(0));
    expect(await report([0, NOW - 1], STEP)).toEqual(agreed(0));
  });

  test("a step back counts in any case, and small differences are those of two reports", async () => {
    expect(await report([0, NOW - 1], -SLACK - 1)).toEqual(agreed(-SLACK - 1));
    expect(await report([0, NOW - 1], -SLACK)).toEqual(agreed(0));
    expect(await report([STEP, NOW - STEP], STEP + SLACK)).toEqual(agreed(STEP));
    expect(await report([STEP, NOW - STEP], STEP + SLACK + 1)).toEqual(agreed(STEP + SLACK + 1));
    expect(await report([STEP, NOW - STEP], "")).toEqual(agreed(STEP));
  });

  test("a run at another time than expected changes nothing", async () => {
    for (const [from, until] of [
      [NOW + 1, NOW + 2],
      [NOW - 2, NOW - 1],
    ]) {
      const stored = `7 ${NOW - STEP}`;
      expect(await report([7, NOW - STEP], STEP, from, until)).toEqual({ shift: 7, inTime: false, stored });
    }
  });
});

describe("the instance that looks for expired sessions (expire.lua)", () => {
  const LEASE = 30_000;

  async function look(owner: string, heldUntil: number) {
    await server().admin.set(`${PARTITION}y`, `${owner} ${heldUntil}`);
    const args = ["me", LEASE, "", "", 1_000, "{}", ...ANY_TIME];
    const [state, left] = (await server().admin.eval(scripts.expire.text, 1, PARTITION, ...args)) as string[];
    return state === "held" ? Number(left) : { held: await server().admin.get(`${PARTITION}y`) };
  }
  const mine = { held: `me ${NOW + LEASE}` };

  test("is another one until its lease has passed", async () => {
    expect(await look("other", NOW + LEASE)).toBe(LEASE);
    expect(await look("other", NOW + 1)).toBe(1);
    expect(await look("other", NOW)).toEqual(mine);
  });

  test("is this one if the other's lease lasts longer than a lease can, because the clock was set back", async () => {
    expect(await look("other", NOW + LEASE + 1)).toEqual(mine);
  });

  test("extends its own lease in the second half", async () => {
    expect(await look("me", NOW + LEASE / 2)).toEqual({ held: `me ${NOW + LEASE / 2}` });
    expect(await look("me", NOW + LEASE / 2 - 1)).toEqual(mine);
  });
});

test("there are as many subscriptions as the limit, and no more (subscription.lua)", async () => {
  const create = (id: string, definition = "{}") =>
    server().admin.eval(scripts.subscription.text, 1, PARTITION, "create", id, definition, NOW, 2, ...ANY_TIME);
  expect([await create("a"), await create("b"), await create("c")]).toEqual(["done", "done", "full"]);
  expect([await create("b"), await create("b", "[]")]).toEqual(["done", "there"]);
});

test("one reading of the revocation log has as many entries as the limit, over all partitions (revocations.lua)", async () => {
  const entry = (at: number) => `sid${at} ${NOW - 100} ${NOW + 100} logout`;
  const tags = ["{01}", "{02}", "{03}"];
  for (const [at, tag] of tags.entries()) {
    await server().admin.zadd(`${tag}l`, NOW - 100, entry(2 * at), NOW - 99, entry(2 * at + 1));
  }
  const read = async (limit: number) =>
    server().admin.eval(scripts.revocations.text, 3, ...tags, limit, "", "", "", ...ANY_TIME);
  const first = [String(NOW), "log {01}", entry(0), entry(1)];
  expect(await read(2)).toEqual([...first, "rest {02}"]);
  expect(await read(3)).toEqual([...first, "log {02}", entry(2), "rest {02}"]);
});

describe("the entries of a log (revocations.lua)", () => {
  const log = `${PARTITION}l`;
  /** Reads the log, whose entries have these times. Returns after which entry the caller has to read again; undefined if nowhere. */
  async function rereads(...times: readonly number[]) {
    await server().admin.del(log);
    for (const time of times) await server().admin.zadd(log, time, `entry at ${time}`);
    const reply = (await server().admin.eval(scripts.revocations.text, 1, PARTITION, 100, "", ...ANY_TIME)) as string[];
    return reply.find((line) => line.startsWith("next "))?.slice("next ".length);
  }

  test("of the present millisecond are read again: an older instance may still insert one before them", async () => {
    expect(await rereads(NOW - 2, NOW - 1)).toBeUndefined();
    expect(await rereads(NOW - 1, NOW)).toBe(`entry at ${NOW - 1}`);
    expect(await rereads(NOW - 1, NOW, NOW + 1)).toBe(`entry at ${NOW - 1}`);
    expect(await rereads(NOW)).toBe("");
  });
});
