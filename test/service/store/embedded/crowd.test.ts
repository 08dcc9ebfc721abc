/** Subjects and files with so many sessions that their rows are written by SQL: where the steps of the embedded store begin and end. */
import { DatabaseSync } from "node:sqlite";
import { beforeEach, describe, expect, test } from "vitest";
import type { SessionId } from "../../../../src/service/session/model.ts";
import { StoreUnavailable } from "../../../../src/service/session/ports.ts";
import type { StoreWithSignals } from "../../../../src/service/signals/ports.ts";
import { openNewFile, START } from "../../../support/store/embedded-file.ts";
import {
  ABSOLUTE,
  endedAll,
  endedSessions,
  expectCreated,
  IDLE,
  newSession,
  nonce,
  SECOND,
  sidsOf,
  subject,
} from "../../../support/store/sessions.ts";

let path: string;
let now: number;
let store: StoreWithSignals;

beforeEach(() => {
  now = START;
  ({ path, store } = openNewFile(() => now));
});

/** Runs a statement on the file, beside the store. */
function query(sql: string, ...values: (string | number)[]) {
  const db = new DatabaseSync(path);
  try {
    return db.prepare(sql).all(...values);
  } finally {
    db.close();
  }
}

/** Gives all sessions the same times, and ids in the reverse order of their rows. Returns these in the order of the rows. */
function ofOneMillisecond() {
  const times = "created_at = ?, last_refreshed_at = ?";
  query(`UPDATE sessions SET ${times}, sid = printf('s%04d', 9999 - rowid) RETURNING sid`, now, now);
  return query("SELECT sid FROM sessions ORDER BY rowid").map(({ sid }) => sid);
}

/** Creates one session as the store does, and copies its row. The copies are a millisecond apart and end in `-1`, `-2` and so on. */
async function crowd(user: string, count: number, idleTimeoutMs = IDLE): Promise<SessionId[]> {
  const session = newSession(user, { idleTimeoutMs });
  await store.create(session, nonce(), { cap: 100_000 });
  query(
    `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
     INSERT INTO sessions (sid, subject, created_at, last_refreshed_at, idle_expires_at, absolute_expires_at, fixed, rotation, actor, examined_at)
     SELECT sid || '-' || i, subject, created_at + i, last_refreshed_at + i, idle_expires_at, absolute_expires_at, fixed, rotation, actor, examined_at
     FROM sessions, n WHERE sid = ? AND ? > 1`,
    count - 1,
    session.sid,
    count,
  );
  query("UPDATE store SET newest = max(newest, (SELECT max(created_at) FROM sessions)) RETURNING newest");
  return Array.from({ length: count }, (_, at) => (at === 0 ? session.sid : (`${session.sid}-${at}` as SessionId)));
}

const liveCount = (user: string) =>
  query("SELECT sid FROM sessions WHERE subject = ? AND idle_expires_at > ?", user, now).length;
const loggedAs = (reason: string) =>
  Number(query("SELECT count(*) AS count FROM log WHERE reason = ?", reason)[0]?.count);

describe("the count of all sessions", () => {
  test.each([0, 1, 249, 250, 251, 500, 501])("of %d is exact", async (count) => {
    if (count > 0) await crowd(subject(), count);
    expect(await store.count()).toBe(count);
  });

  test("leaves out rows that were removed in between, and those that are not live", async () => {
    const sids = await crowd(subject(), 600);
    for (const sid of [sids[0], sids[249], sids[250], sids[599]]) await store.end(sid as SessionId, "logout");
    await crowd(subject(), 10, SECOND);
    expect(await store.count()).toBe(606);
    now += SECOND;
    expect(await store.count()).toBe(596);
  });

  test("lets other work run in between", async () => {
    await crowd(subject(), 1_000);
    let turns = 0;
    const turn = () => void (turns++ < 100 && setImmediate(turn));
    setImmediate(turn);
    await store.count();
    expect(turns).toBeGreaterThanOrEqual(4);
  });
});

describe("the cap of a subject", () => {
  const create = async (user: string, cap: number) =>
    sidsOf(expectCreated(await store.create(newSession(user), nonce(), { cap })).evicted);

  test.each([49, 50, 51, 100, 101, 130])("ends %d sessions beyond it, the oldest, and each once", async (excess) => {
    const user = subject();
    const sids = await crowd(user, 150);
    now += SECOND;
    expect(await create(user, 151 - excess)).toEqual(sids.slice(0, excess));
    expect(liveCount(user)).toBe(151 - excess);
    expect(loggedAs("session_limit")).toBe(excess);
  });

  test.each([990, 1_000, 1_001, 1_100])("counts none of %d that have expired", async (expired) => {
    const user = subject();
    await crowd(user, expired, SECOND);
    const sids = await crowd(user, 30);
    now += 10 * SECOND;
    expect(await create(user, 31)).toEqual([]);
    // Where more have expired than one creation counts, it first ends some of them, fifty at once, as an expiry does.
    expect(loggedAs("expired")).toBe(50 * Math.ceil(Math.max(0, expired - 1_000) / 50));
    expect(await create(user, 31)).toEqual(sids.slice(0, 1));
    expect(liveCount(user)).toBe(31);
  });

  test("counts none of a subject that has expired while another one has many that have", async () => {
    const [user, other] = [subject(), subject()];
    await crowd(other, 1_200, SECOND);
    const sids = await crowd(user, 1_100);
    await crowd(user, 20, 2 * SECOND);
    now += 10 * SECOND;
    expect(await create(user, 1_101)).toEqual([]);
    expect(await create(user, 1_101)).toEqual(sids.slice(0, 1));
  });

  test("is kept where all that are to be examined were refreshed since", async () => {
    const user = subject();
    const sids = await crowd(user, 1_300);
    query("UPDATE sessions SET examined_at = ? RETURNING sid", now);
    now += SECOND;
    expect(await create(user, 1_300)).toEqual(sids.slice(0, 1));
    expect(loggedAs("expired")).toBe(0);
    // One creation examines two hundred. One of them is the session that has ended.
    expect(query("SELECT sid FROM sessions WHERE examined_at <= ?", now)).toHaveLength(1_100);
  });

  test("is kept where those that are examined first were refreshed since, and many others have expired", async () => {
    const [user, other] = [subject(), subject()];
    await crowd(other, 250);
    query("UPDATE sessions SET examined_at = 0 RETURNING sid");
    await crowd(user, 1_500, SECOND);
    const sids = await crowd(user, 100);
    now += 10 * SECOND;
    expect(await create(user, 50)).toEqual(sids.slice(0, 51));
  });

  test.each([30, 1_000])("of %d sessions ends none of another subject that have expired", async (count) => {
    const [user, other] = [subject(), subject()];
    await crowd(other, 1_200, SECOND);
    const sids = await crowd(user, count);
    now += 10 * SECOND;
    expect(await create(user, count)).toEqual(sids.slice(0, 1));
    expect(loggedAs("expired")).toBe(0);
  });

  test("counts no session that is spared of a logout, if none is", async () => {
    const user = subject();
    await crowd(user, 150);
    now += SECOND;
    const ending = store.endAll(user, "revoked_subject");
    expect(await Promise.all([create(user, 2), create(user, 2)])).toEqual([[], []]);
    expect(await ending).toMatchObject({ ok: true, count: 150 });
    expect(liveCount(user)).toBe(2);
  });

  test.each([127, 128, 129])(
    "ends sessions of one millisecond in their order, up to 128 of them (%d)",
    async (count) => {
      const user = subject();
      await crowd(user, count);
      const rows = ofOneMillisecond();
      const [evicted] = await create(user, count);
      expect(evicted).toBe(count <= 128 ? rows[0] : rows.at(-1));
    },
  );
});

describe("a limit of a subject", () => {
  const limit = { scope: "subject", maxSessions: 100, whenExceeded: "end_oldest" } as const;
  const within = (user: string) => store.create(newSession(user), nonce(), { cap: 100_000, limit });

  test.each([99, 100, 149, 150, 199, 200, 201, 250, 400])("of a hundred holds for %d sessions", async (count) => {
    const user = subject();
    const sids = await crowd(user, count);
    now += SECOND;
    expect(await within(user)).toMatchObject({
      ok: true,
      evicted: endedSessions(...sids.slice(0, Math.max(0, count - 99))),
    });
    expect(liveCount(user)).toBe(Math.min(100, count + 1));
  });

  test.each([127, 128, 129])(
    "ends sessions of one millisecond in their order, up to 128 of them (%d)",
    async (count) => {
      const user = subject();
      await crowd(user, count);
      const rows = ofOneMillisecond();
      const outcome = await within(user);
      expect(outcome.ok && outcome.evicted[0]?.sid).toBe(count <= 128 ? rows[0] : rows.at(-1));
    },
  );

  /** Makes the sessions at these places of a crowd those of one application. */
  const ofApp = (sids: readonly SessionId[]) => {
    for (const sid of sids)
      query("UPDATE sessions SET fixed = json_set(fixed, '$.clientId', 'app') WHERE sid = ?", sid);
  };
  const intoApp = (user: string, maxSessions: number) =>
    store.create(newSession(user, { clientId: "app" }), nonce(), {
      cap: 100_000,
      limit: { scope: "client_id", maxSessions, whenExceeded: "end_least_recently_used" },
    });

  test("counts no session that ended while it was counting", async () => {
    const user = subject();
    const sids = await crowd(user, 500);
    const app = sids.filter((_, at) => at % 50 === 0);
    ofApp(app);
    now += SECOND;
    const creating = intoApp(user, 9);
    await store.end(app[0] as SessionId, "logout");
    expect(await creating).toMatchObject({ ok: true, evicted: endedSessions(...app.slice(1, 2)) });
  });

  test.each([64, 65, 66, 70])(
    "of one ends all of %d sessions that are found first, and the one behind them",
    async (count) => {
      const user = subject();
      const sids = await crowd(user, 400);
      const app = [...sids.slice(0, count), sids[399] as SessionId];
      ofApp(app);
      now += SECOND;
      expect(await intoApp(user, 1)).toMatchObject({ ok: true, evicted: endedSessions(...app) });
    },
  );
});

describe("the logout of a subject", () => {
  test.each([50, 51, 52, 100, 101, 150])(
    "ends all of %d sessions, and takes several steps for more than 51",
    async (count) => {
      const user = subject();
      const sids = await crowd(user, count);
      now += SECOND;
      const ending = store.endAll(user, "revoked_subject");
      // The first step has run. With few sessions it has ended them.
      expect(loggedAs("revoked_subject")).toBe(count <= 51 ? count : 0);
      expect(await store.find(sids[count - 1] as SessionId)).toEqual({ ok: false, reason: "revoked" });
      expect(await ending).toMatchObject({ ok: true, count });
      expect(loggedAs("revoked_subject")).toBe(count);
      expect(query("SELECT created_until, count FROM subject_ends")).toEqual(
        count <= 51 ? [] : [{ created_until: 0, count }],
      );
    },
  );

  test("is complete for all who wait for it, whoever finishes it", async () => {
    const user = subject();
    const sids = await crowd(user, 150);
    now += SECOND;
    const ending = store.endAll(user, "revoked_subject");
    const other = store.end(sids[149] as SessionId, "logout");
    const outcome = await ending;
    expect(outcome).toMatchObject({ ok: true, count: 150 });
    expect(sids).toEqual(expect.arrayContaining(outcome.ok ? sidsOf(outcome.ended) : []));
    expect(await other).toEqual({ ok: false, reason: "already_ended" });
    expect(loggedAs("revoked_subject")).toBe(150);
  });

  test("that begins while another one of the subject is under way ends what that one spares", async () => {
    const user = subject();
    const [spared = "" as SessionId] = await crowd(user, 150);
    now += SECOND;
    const first = store.endAll(user, "revoked_others", { except: spared });
    const second = store.endAll(user, "revoked_subject");
    expect(await first).toMatchObject({ ok: true, count: 149 });
    expect(await second).toEqual(endedAll(spared));
  });

  test("names the actors of those that had one", async () => {
    const user = subject();
    const sids = await crowd(user, 150);
    const acting = [sids[3], sids[140]] as SessionId[];
    for (const sid of acting) {
      const actor = JSON.stringify({ subject: "support" });
      query("UPDATE sessions SET actor = '', fixed = json_set(fixed, '$.actor', json(?)) WHERE sid = ?", actor, sid);
    }
    now += SECOND;
    const outcome = await store.endAll(user, "revoked_subject");
    const named = outcome.ok ? outcome.ended.filter(({ actor }) => actor !== undefined) : [];
    expect(named).toEqual(acting.map((sid) => ({ sid, actor: "support" })));
  });

  test("that is not known any more, as after the file was replaced, is unavailable", async () => {
    const user = subject();
    await crowd(user, 150);
    now += SECOND;
    const ending = store.endAll(user, "revoked_subject");
    query("DELETE FROM subject_ends");
    await expect(ending).rejects.toThrow(StoreUnavailable);
  });

  test("is remembered for a minute after it was finished", async () => {
    const ends = () => query("SELECT subject FROM subject_ends ORDER BY changed_at").map((row) => row.subject);
    const logout = async () => {
      const user = subject();
      await crowd(user, 60);
      await store.endAll(user, "revoked_subject");
      return user;
    };
    const first = await logout();
    now += 60 * SECOND;
    const second = await logout();
    expect(ends()).toEqual([first, second]);
    now += 1;
    const third = await logout();
    expect(ends()).toEqual([second, third]);
  });
});

describe("the expiry", () => {
  const steps = async () => {
    const counts: number[] = [];
    for (let isDone = false; !isDone; ) {
      const step = await store.expire();
      counts.push(step.ended.length);
      ({ isDone } = step);
    }
    return counts;
  };

  test.each([
    [0, [0]],
    [1, [1]],
    [50, [50]],
    [51, [50, 1]],
    [200, [50, 50, 50, 50]],
    [201, [50, 50, 50, 50, 1]],
  ])("of %d sessions ends fifty at once", async (count, expected) => {
    if (count > 0) await crowd(subject(), count, SECOND);
    now += SECOND;
    expect(await steps()).toEqual(expected);
    expect(loggedAs("expired")).toBe(count);
  });

  test.each([
    [199, 1],
    [200, 2],
    [201, 2],
  ])("of %d sessions that were refreshed since examines two hundred at once", async (count, expected) => {
    await crowd(subject(), count);
    query("UPDATE sessions SET examined_at = ? RETURNING sid", now);
    expect(await steps()).toEqual(Array.from({ length: expected }, () => 0));
    expect(query("SELECT sid FROM sessions WHERE examined_at <> idle_expires_at")).toEqual([]);
  });

  test("removes fifty at once of those that a logout of everyone has ended, and logs none", async () => {
    await crowd(subject(), 60, SECOND);
    await store.revokeAll(undefined);
    now += SECOND;
    expect((await store.expire()).isDone).toBe(false);
    expect(query("SELECT count(*) AS count FROM sessions")).toEqual([{ count: 10 }]);
    expect(await steps()).toEqual([0]);
    expect(query("SELECT sid FROM sessions")).toEqual([]);
    expect(loggedAs("expired")).toBe(0);
  });

  test("names no subject of a session whose user was forgotten", async () => {
    const user = subject();
    const [sid] = await crowd(user, 1, SECOND);
    now += SECOND;
    await store.forget(user);
    const [row] = query("SELECT subject, fixed FROM sessions");
    expect([row?.subject, JSON.parse(String(row?.fixed))]).toEqual([
      "",
      {
        ...{ clientId: "web", audience: "", claims: "{}", idleTimeout: SECOND, absoluteLifetime: ABSOLUTE },
        client: { userAgent: "", ipAddress: "", displayName: "" },
      },
    ]);
    expect(await store.expire()).toEqual({ ended: [{ sid }], isDone: true });
  });
});
