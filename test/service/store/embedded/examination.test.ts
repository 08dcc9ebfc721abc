/**
 * The embedded store examines sessions periodically to find the expired ones. This work is limited, however many sessions there are:
 * refreshes do not write new times of expiry, and each step examines a limited number of sessions.
 */
import { DatabaseSync } from "node:sqlite";
import { beforeEach, expect, test } from "vitest";
import type { SessionId } from "../../../../src/service/session/model.ts";
import type { SessionStore } from "../../../../src/service/session/ports.ts";
import { storeMs } from "../../../../src/service/session/time.ts";
import { SCHEMA_VERSIONS } from "../../../../src/service/store/embedded/schema-versions.ts";
import { prepareStatements } from "../../../../src/service/store/embedded/statements.ts";
import { openNewFile, START } from "../../../support/store/embedded-file.ts";
import { newSession, nonce, SECOND, subject } from "../../../support/store/sessions.ts";

const SHORT = 100 * SECOND;
/** The number of sessions to create, which is more than one step examines. */
const MANY = 250;

let path: string;
let now: number;
let store: SessionStore;

beforeEach(() => {
  now = START;
  ({ path, store } = openNewFile(() => now));
});

async function login() {
  const [session, first] = [newSession(subject(), { idleTimeoutMs: SHORT }), nonce()];
  await store.create(session, first, { cap: 1 });
  return { sid: session.sid, refresh: () => store.rotate(session.sid, tokenOf(first), nonce()) };
}

const tokenOf = (first: string) => ({ generation: 1, nonce: first, issuedAt: storeMs(0) });

/** Searches for expired sessions, step by step, until none is left. Returns the sessions that each step has ended. */
async function steps(): Promise<SessionId[][]> {
  const ended: SessionId[][] = [];
  for (let isDone = false; !isDone; ) {
    const step = await store.expire();
    ended.push(step.ended.map(({ sid }) => sid));
    isDone = step.isDone;
  }
  return ended;
}

/** Returns how many sessions will be examined for expiry up to a time. */
function toExamine(until: number): number {
  const db = new DatabaseSync(path, { readOnly: true });
  const count = db.prepare("SELECT count(*) AS count FROM sessions WHERE examined_at <= ?").get(until)?.count;
  db.close();
  return Number(count);
}

test("sessions that were refreshed are examined again when they would expire, and end once", async () => {
  const logins = await Promise.all(Array.from({ length: MANY }, login));
  const createdAt = now;
  now += SHORT / 2;
  for (const { refresh } of logins) expect((await refresh()).ok).toBe(true);
  expect(toExamine(createdAt + SHORT)).toBe(MANY); // Refreshes do not change when a session is examined.
  now = createdAt + SHORT;
  expect(await steps()).toEqual([[], []]);
  expect(toExamine(now)).toBe(0);
  now += SHORT / 2;
  const ended = await steps();
  expect(ended.flat().sort()).toEqual(logins.map(({ sid }) => sid).sort());
  expect(Math.max(...ended.map((some) => some.length))).toBeLessThanOrEqual(50);
});

test("a session is never examined later than it expires, also if the store's time went back", async () => {
  const { sid, refresh } = await login();
  const db = new DatabaseSync(path);
  db.exec("UPDATE sessions SET examined_at = examined_at + 1e9");
  db.close();
  await refresh();
  now += SHORT;
  expect(await steps()).toEqual([[sid]]);
});

test("a statement with a limit reads no more of a subject's sessions than that, whatever it sorts", () => {
  const db = new DatabaseSync(":memory:");
  for (const step of SCHEMA_VERSIONS) db.exec(step);
  const { ofSubject, oldest, ending, page, byCreation, toExamine } = prepareStatements(db);
  for (const { sourceSQL } of [ofSubject, oldest, ending, page, byCreation, toExamine]) {
    const values = Array.from(sourceSQL.matchAll(/\?/g), () => 1);
    const plan = db.prepare(`EXPLAIN QUERY PLAN ${sourceSQL}`).all(...values);
    const steps = plan.map(({ detail }) => String(detail)).filter((detail) => !detail.startsWith("CO-ROUTINE"));
    const sortsAll = steps.length === plan.length && steps.some((detail) => detail.includes("TEMP B-TREE"));
    expect({ sourceSQL, sortsAll }).toEqual({ sourceSQL, sortsAll: false });
  }
  db.close();
});
