/**
 * A reader of the revocation log misses no entry, and gets hardly any entry twice. This holds although clocks differ, small steps of a
 * clock are not noticed, and a failover leads to nodes that lack the last entries. The real scripts run on a real Redis.
 */
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { InvalidCursor } from "../../../../src/service/session/ports.ts";
import type { Verb } from "../../../../src/service/store/redis/encoding/arguments.ts";
import { createLogReader } from "../../../../src/service/store/redis/log-reader.ts";
import { TAGS, tagOfSession } from "../../../../src/service/store/redis/partitions.ts";
import { loadScripts } from "../../../../src/service/store/redis/scripts.ts";
import { type RedisServer, startRedis } from "../../../support/redis.ts";
import { MOVABLE_CLOCK } from "../../../support/store/backends.ts";
import { MARKER_LIFE, neighbour, SECOND, sidOf, subject } from "../../../support/store/sessions.ts";

const scripts = loadScripts(MOVABLE_CLOCK);
const ANY_TIME = [0, Number.MAX_SAFE_INTEGER, 0];
const user = subject();
const tag = tagOfSession(sidOf(user));

let redis: RedisServer;
let now = Date.now() + 48 * 3_600_000; // The test's clock is ahead of Redis's own clock, by which Redis would otherwise expire keys.

beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

const run = (verb: Verb, tags: readonly string[], args: readonly (string | number)[]) =>
  redis.admin.callBuffer(
    "EVAL",
    scripts[verb].text,
    String(tags.length),
    ...tags,
    ...args.map(String),
    ...ANY_TIME.map(String),
  );

async function setClock(time: number): Promise<void> {
  now = time;
  await redis.admin.mset(...TAGS.flatMap((tag) => [`${tag}clock`, String(now)]));
}

async function end(of = user): Promise<string> {
  const sid = sidOf(of);
  expect(String(await run("end", [tagOfSession(sid)], [sid, "logout", MARKER_LIFE, "", "", ""]))).toBe("marked");
  return sid;
}

/** Starts a new log, and a reader that has read it. */
async function start() {
  await redis.admin.flushall();
  await setClock(now + SECOND);
  const read = createLogReader(
    { run: (verb, tags, args) => run(verb, tags, args as readonly string[]), clustered: false },
    async () => {},
  );
  let { cursor } = await read(undefined);
  return {
    readAfter: read,
    async read(inTheSameMs = false): Promise<string[]> {
      if (!inTheSameMs) await setClock(now + 1);
      const batch = await read(cursor);
      cursor = batch.cursor;
      return batch.revocations.map(({ sid }) => sid);
    },
  };
}

const log = () => redis.admin.zrange(`${tag}l`, "0", "-1");
const sidsOf = (entries: readonly string[]) => entries.map((entry) => entry.slice(0, 23));

test("an ending is read once, and not again", async () => {
  const { read } = await start();
  const sid = await end();
  expect(await read()).toEqual([sid]);
  expect(await read()).toEqual([]);
  const other = await end(neighbour(user));
  expect(await read()).toEqual([other]);
});

test("an ending that version 0.1 appends before others of the same millisecond is read", async () => {
  const { read } = await start();
  const sids = [await end(), await end()];
  expect(await read(true)).toEqual(sids);
  await redis.admin.zadd(`${tag}l`, now, `${sidOf(user)} ${now} ${now + MARKER_LIFE} logout`);
  expect(await read()).toHaveLength(3);
  expect(await read()).toEqual([]);
});

test.each([1, 499, 6_000, 3_600_000])("an ending by a clock that was set back by %d ms is read", async (ms) => {
  const { read } = await start();
  await end();
  await read();
  await setClock(now - ms);
  const late = [await end(), await end()];
  expect(await read()).toEqual(late);
});

test("a node that has taken over without the last ending gives what it was given instead, by whatever clock", async () => {
  const { read } = await start();
  const kept = await end();
  await setClock(now + SECOND);
  await end();
  await read();
  const [, lost = ""] = await log();
  await redis.admin.zrem(`${tag}l`, lost);
  await setClock(now - 500);
  const after = await end();
  expect((await log()).length).toBe(2); // The log still has two entries, one of which is new.
  expect(await read()).toEqual([kept, after]);
  expect(await read()).toEqual([]);
});

test("a partition from which all is gone is read from its beginning", async () => {
  const { read } = await start();
  await end();
  await read();
  await redis.admin.del(`${tag}l`);
  expect(await read()).toEqual([]);
  const sid = await end();
  expect(await read()).toEqual([sid]);
});

test("an ending is read although all before it has been dropped", async () => {
  const { read } = await start();
  await end();
  await read();
  await setClock(now + 2 * MARKER_LIFE);
  const sid = await end();
  expect(await log()).toHaveLength(1);
  expect(await read()).toEqual([sid]);
});

test("a reading that fails halfway is repeated as a whole", async () => {
  let isDown = false;
  await redis.admin.flushall();
  await setClock(now + SECOND);
  const half = async (verb: Verb, tags: readonly string[], args: readonly unknown[]) => {
    if (isDown && tags[0] !== tag) throw new Error("down");
    return run(verb, tags, args as readonly string[]);
  };
  const read = createLogReader({ run: half, clustered: true }, async () => {});
  const { cursor } = await read(undefined);
  const sid = await end();
  isDown = true;
  await expect(read(cursor)).rejects.toThrow("down");
  isDown = false;
  expect((await read(cursor)).revocations.map((entry) => entry.sid)).toEqual([sid]);
});

test("a cursor of another reader, or an older one, gives all that the log holds", async () => {
  const { readAfter: read } = await start();
  const { readAfter: readOther } = await start();
  const sid = await end();
  const { cursor } = await read(undefined);
  await readOther(undefined);
  expect((await readOther(cursor)).revocations).toHaveLength(1);
  await read(cursor);
  expect((await read(cursor)).revocations.map((entry) => entry.sid)).toEqual([sid]);
  await expect(read("r.1")).rejects.toThrow(InvalidCursor);
});

const steps = fc.array(
  fc.oneof(
    { weight: 4, arbitrary: fc.record({ kind: fc.constant("end" as const), count: fc.integer({ min: 1, max: 3 }) }) },
    { weight: 3, arbitrary: fc.record({ kind: fc.constant("read" as const) }) },
    {
      weight: 2,
      arbitrary: fc.record({ kind: fc.constant("clock" as const), by: fc.integer({ min: -400, max: 500 }) }),
    },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant("drop" as const) }) },
    {
      weight: 1,
      arbitrary: fc.record({ kind: fc.constant("takeover" as const), lost: fc.integer({ min: 1, max: 3 }) }),
    },
  ),
  { minLength: 5, maxLength: 25 },
);

test("in any order of endings, readings, set clocks and failovers all that the log holds has been read", async () => {
  await fc.assert(
    fc.asyncProperty(steps, async (steps) => {
      const { read } = await start();
      const seen = new Set<string>();
      let mayRepeat = false;
      for (const step of [...steps, { kind: "read" as const }]) {
        if (step.kind === "end") for (let left = step.count; left > 0; left--) await end();
        if (step.kind === "clock") {
          await setClock(now + step.by);
          mayRepeat ||= step.by < 0; // Entries may now have a time in the future. They are read again until that time.
        }
        if (step.kind === "drop") await setClock(now + MARKER_LIFE);
        if (step.kind === "takeover") {
          const lost = (await log()).slice(-step.lost);
          if (lost.length > 0) await redis.admin.zrem(`${tag}l`, ...lost);
          mayRepeat = true;
        }
        if (step.kind !== "read") continue;
        const given = await read();
        if (!mayRepeat) expect(given.filter((sid) => seen.has(sid))).toEqual([]);
        for (const sid of given) seen.add(sid);
        expect(sidsOf(await log()).filter((sid) => !seen.has(sid))).toEqual([]);
      }
    }),
    { numRuns: 60 },
  );
});

test("of what several nodes return, the earliest time and the latest logout of everyone count", async () => {
  const times = [5_000, 3_000, 4_000];
  const logouts = [100, 300, 200];
  let calls = 0;
  const run = async () => {
    const at = calls++ % times.length;
    return [String(times[at]), `* ${logouts[at]}`].map((each) => Buffer.from(each));
  };
  const read = createLogReader({ run, clustered: false }, async () => {});
  const first = await read(undefined);
  expect(calls).toBeGreaterThan(2);
  expect(first).toMatchObject({ now: 3_000, revokedUntil: 300, revocations: [] });
});
