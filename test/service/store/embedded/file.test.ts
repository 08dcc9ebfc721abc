/** The file of the embedded store: its permissions, and what happens when the file cannot be used. */
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { type SessionStore, StoreUnavailable } from "../../../../src/service/session/ports.ts";
import { storeMs, wallMs } from "../../../../src/service/session/time.ts";
import { createEmbeddedStore } from "../../../../src/service/store/embedded/store.ts";
import {
  IDLE,
  MARKED,
  MARKER_LIFE,
  newSession,
  nonce,
  REUSE_INTERVAL,
  SECOND,
  sidOf,
  subject,
} from "../../../support/store/sessions.ts";

let directory: string;
let path: string;
let now = 0;
let store: SessionStore | undefined;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "store-"));
  path = join(directory, "data", "sessions.db");
  now = 1_800_000_000_000;
});
afterEach(async () => {
  await store?.close();
  store = undefined;
  rmSync(directory, { recursive: true });
});

function open(): SessionStore {
  store = createEmbeddedStore({ path, clock: () => wallMs(now), steady: () => now, ...LIVES });
  return store;
}

const LIVES = { reuseIntervalMs: REUSE_INTERVAL, markerLifeMs: MARKER_LIFE };

const mode = (file: string) => (statSync(file).mode & 0o777).toString(8);

test("only its owner may read it", async () => {
  await open().create(newSession(subject()), nonce(), { cap: 1 });
  expect(mode(join(directory, "data"))).toBe("700");
  const files = readdirSync(join(directory, "data"));
  expect(files.sort()).toEqual(["sessions.db", "sessions.db-shm", "sessions.db-wal"]);
  for (const file of files) expect(mode(join(directory, "data", file))).toBe("600");
});

test("a file that others could read is closed to them", async () => {
  await open().close();
  chmodSync(path, 0o644);
  open();
  expect(mode(path)).toBe("600");
});

test("sessions and the log outlive a restart, and so do cursors", async () => {
  const session = newSession(subject());
  const before = open();
  await before.create(session, nonce(), { cap: 1 });
  const old = sidOf(subject());
  await before.end(old, "logout");
  const { cursor } = await before.revocations(undefined);
  await before.close();
  const after = open();
  expect((await after.find(session.sid)).ok).toBe(true);
  expect(await after.find(old)).toEqual({ ok: false, reason: "revoked" });
  await after.end(session.sid, "logout");
  expect((await after.revocations(cursor)).revocations.map(({ sid }) => sid)).toEqual([session.sid]);
});

describe("a file of an older version", () => {
  const session = newSession(subject());
  const token = { generation: 1, nonce: nonce(), issuedAt: storeMs(0) };

  /** Makes the file have the tables of the first version, and a session. Returns an open connection to it, as the older version has. */
  async function makeOld(): Promise<DatabaseSync> {
    await open().create(session, token.nonce, { cap: 1 });
    await store?.close();
    const db = new DatabaseSync(path);
    db.exec("ALTER TABLE store DROP COLUMN ended_until; ALTER TABLE store DROP COLUMN newest");
    db.exec(
      "DROP INDEX sessions_by_creation; DROP TABLE events; DROP TABLE due; DROP TABLE subject_ends; PRAGMA user_version = 1",
    );
    db.exec("DROP TABLE signals; DROP TABLE subscriptions; DROP TABLE signal_state");
    db.exec("DROP INDEX sessions_by_examination; ALTER TABLE sessions DROP COLUMN examined_at");
    db.exec("DROP INDEX sessions_by_actor; DROP INDEX sessions_by_subject_with_actor");
    db.exec("ALTER TABLE sessions DROP COLUMN actor");
    db.exec("DROP INDEX sessions_by_upstream_session; DROP INDEX sessions_by_upstream_subject");
    db.exec("CREATE INDEX sessions_by_expiry ON sessions (idle_expires_at)");
    return db;
  }

  test("keeps its sessions, and learns what the newer one needs", async () => {
    (await makeOld()).close();
    now -= SECOND; // Sessions end even though the clock is set back.
    const after = open();
    expect((await after.listAll(1, undefined, {})).sessions).toMatchObject([{ sid: session.sid }]);
    expect(await after.rotate(session.sid, token, nonce())).toMatchObject({ outcome: "rotate" });
    await after.revokeAll(undefined);
    expect(await after.find(session.sid)).toEqual({ ok: false, reason: "revoked" });
    await after.close();
    expect(await open().find(session.sid)).toEqual({ ok: false, reason: "revoked" });
  });

  test("is not changed while the older version has it open", async () => {
    const older = await makeOld();
    const versionOf = () => older.prepare("PRAGMA user_version").get()?.user_version;
    expect(open).toThrow("a file of an older version, and another process has it open: stop that process first");
    expect(versionOf()).toBe(1);
    older.exec("UPDATE log SET revoked_at = 0"); // The older version goes on.
    older.close();
    expect((await open().find(session.sid)).ok).toBe(true);
  });
});

test("a cursor of a file that is gone gets everything", async () => {
  const before = open();
  for (let at = 0; at < 5; at++) await before.end(sidOf(subject()), "logout");
  const { cursor } = await before.revocations(undefined);
  await before.close();
  rmSync(path);
  const after = open();
  const sid = sidOf(subject());
  await after.end(sid, "logout");
  expect((await after.revocations(cursor)).revocations.map((entry) => entry.sid)).toEqual([sid]);
});

test("what has expired is swept away", async () => {
  const store = open();
  for (let at = 0; at < 20; at++) {
    await store.create(newSession(subject(), { idleTimeoutMs: SECOND }), nonce(), { cap: 1 });
    await store.end(sidOf(subject()), "logout");
  }
  now += IDLE;
  for (let at = 0; at < 10; at++) {
    await store.create(newSession(subject()), nonce(), { cap: 1 });
    await store.end(sidOf(subject()), "logout");
  }
  expect((await store.expire()).ended).toHaveLength(20);
  const db = new DatabaseSync(path, { readOnly: true });
  expect(db.prepare("SELECT count(*) AS n FROM sessions").get()?.n).toBe(10);
  expect(db.prepare("SELECT count(*) AS n FROM log WHERE reason = 'logout'").get()?.n).toBe(10);
  db.close();
});

test("marks of stale tokens that have expired are swept away by later marks", async () => {
  const store = open();
  const session = newSession(subject());
  await store.create(session, nonce(), { cap: 1 });
  for (let at = 0; at < 10; at++) {
    await store.update(session.sid, { claims: `{"at":${at}}`, outdatesTokens: true });
    now += MARKER_LIFE + 1;
  }
  const db = new DatabaseSync(path, { readOnly: true });
  expect(db.prepare("SELECT count(*) AS n FROM log").get()?.n).toBe(1);
  db.close();
});

describe("is unavailable", () => {
  test("while another process holds it, and serves again afterwards", async () => {
    const store = open();
    const other = new DatabaseSync(path);
    other.exec("BEGIN IMMEDIATE");
    await expect(store.end(sidOf(subject()), "logout")).rejects.toThrow(StoreUnavailable);
    await expect(store.ping()).rejects.toThrow(StoreUnavailable);
    other.exec("ROLLBACK");
    other.close();
    expect(await store.end(sidOf(subject()), "logout")).toEqual(MARKED);
  });

  test("not when another process holds it for a while at the opening: that is waited for", async () => {
    await open().close();
    const holder = new DatabaseSync(path);
    holder.exec("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE");
    // The store waits between attempts to open the file. During its second wait, the process that has locked the file releases the lock.
    let waits = 0;
    const between = vi.spyOn(Atomics, "wait").mockImplementation(() => {
      if (++waits === 2) holder.close();
      return "timed-out";
    });
    onTestFinished(() => between.mockRestore());
    expect(await open().end(sidOf(subject()), "logout")).toEqual(MARKED);
    expect(waits).toBe(2);
  });

  test("when it is no database", () => {
    writeFileSync(join(directory, "not-a-database"), "x".repeat(10_000));
    path = join(directory, "not-a-database");
    expect(open).toThrow(StoreUnavailable);
    expect(open).toThrow(path);
  });

  test("when its pages are damaged", async () => {
    const store = open();
    const session = newSession(subject());
    await store.create(session, nonce(), { cap: 1 });
    await store.close();
    const page = 4096;
    const size = statSync(path).size;
    // This overwrites the schema and the data of the file. Its last page contains neither, so it is left as it is.
    writeFileSync(path, Buffer.alloc(size - page, 0xa5), { flag: "r+" });
    expect(open).toThrow(StoreUnavailable);
  });

  test("when a newer version has made it", async () => {
    await open().close();
    const db = new DatabaseSync(path);
    db.exec("PRAGMA user_version = 1000");
    db.close();
    expect(open).toThrow(/newer version/);
    expect(open).toThrow(expect.objectContaining({ cause: expect.any(Error) }));
  });

  test("while a restore that was interrupted has not been run again", () => {
    mkdirSync(join(directory, "data"));
    writeFileSync(`${path}.restoring`, "");
    expect(open).toThrow(/a restore was interrupted: run it again, or remove .*sessions\.db\.restoring to begin/);
    rmSync(`${path}.restoring`);
    open();
  });

  test("when it cannot be made", () => {
    writeFileSync(join(directory, "data"), "a file where the directory should be");
    expect(open).toThrow(StoreUnavailable);
  });
});
