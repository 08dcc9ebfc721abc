/** What is examined of a database file without changing it, and its copy while a store has it open. */
import {
  closeSync,
  copyFileSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import type { SessionStore } from "../../../../src/service/session/ports.ts";
import { wallMs } from "../../../../src/service/session/time.ts";
import { checkDatabase, schemaFault } from "../../../../src/service/store/embedded/check.ts";
import { copyDatabase, isInUse } from "../../../../src/service/store/embedded/copy.ts";
import { holdsSessions } from "../../../../src/service/store/embedded/holds-sessions.ts";
import { openDatabase } from "../../../../src/service/store/embedded/schema.ts";
import { SCHEMA_VERSIONS } from "../../../../src/service/store/embedded/schema-versions.ts";
import { createEmbeddedStore } from "../../../../src/service/store/embedded/store.ts";
import { MARKER_LIFE, newSession, nonce, REUSE_INTERVAL, subject } from "../../../support/store/sessions.ts";

const NOW = 1_800_000_000_000;
let directory: string;
let path: string;

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), "check-"));
  path = join(directory, "sessions.db");
  await open().close();
});
afterEach(() => {
  vi.useRealTimers();
  rmSync(directory, { recursive: true });
});

function open(): SessionStore {
  const lives = { reuseIntervalMs: REUSE_INTERVAL, markerLifeMs: MARKER_LIFE };
  const store = createEmbeddedStore({ path, clock: () => wallMs(NOW), steady: () => NOW, ...lives });
  onTestFinished(() => store.close());
  return store;
}

/** Runs SQL statements on the file, as another program may do. */
function change(sql: string, file = path): void {
  const db = new DatabaseSync(file);
  db.exec(sql);
  db.close();
}

/** Returns how many files this process has open whose path begins with that of the database. */
function openFiles(): number {
  const links = readdirSync("/proc/self/fd").map((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`);
    } catch {
      return ""; // It was closed in the meantime.
    }
  });
  return links.filter((link) => link.startsWith(path)).length;
}

describe("the pages", () => {
  test("of a file that is whole have no fault, also while a store has it open", () => {
    open();
    expect(checkDatabase(path)).toBeUndefined();
  });

  test("of a file that is not there are absent, unless its restore was interrupted", () => {
    const none = `${path}.none`;
    expect(checkDatabase(none)).toBe("absent");
    writeFileSync(`${none}.restoring`, "");
    expect(checkDatabase(none)).toBe("its restore was interrupted");
  });

  test("of a file that is no database are unreadable", () => {
    writeFileSync(path, Buffer.alloc(4096, 0xa5), { flag: "r+" });
    expect(() => checkDatabase(path)).toThrow(/not a database/);
  });

  test("that are damaged are a fault, which is named", () => {
    const file = openSync(path, "r+");
    writeSync(file, Buffer.from([0, 0, 0, 1]), 0, 4, 36); // The header claims that one page is free.
    closeSync(file);
    expect(checkDatabase(path)).toMatch(/freelist/i);
  });
});

describe("the tables", () => {
  test("of this service, of every version, have no fault", () => {
    expect(schemaFault(path)).toBeUndefined();
    for (let version = 1; version <= SCHEMA_VERSIONS.length; version++) {
      const file = `${path}.${version}`;
      change([...SCHEMA_VERSIONS.slice(0, version), `PRAGMA user_version = ${version}`].join(";"), file);
      expect([version, schemaFault(file)]).toEqual([version, undefined]);
    }
  });

  test("may have other comments and spaces", () => {
    const [first = ""] = SCHEMA_VERSIONS;
    const file = `${path}.other`;
    change(`${first.replaceAll("TEXT", "  \n TEXT -- a remark\n")}; PRAGMA user_version = 1`, file);
    expect(schemaFault(file)).toBeUndefined();
  });

  test.each([
    ["DROP TABLE log", "lacks the table log"],
    ["DROP INDEX log_by_sid", "lacks the index log_by_sid"],
    ["CREATE TABLE mine (a)", "has a table mine that this service did not make"],
    ['CREATE TABLE "sqlite-like" (a)', "has a table sqlite-like that this service did not make"],
    ["ALTER TABLE log ADD COLUMN more TEXT", "has a table log that this service did not make"],
    ["CREATE VIEW live AS SELECT * FROM sessions", "has a view live that this service did not make"],
    [
      "CREATE TRIGGER stay BEFORE DELETE ON sessions BEGIN SELECT RAISE(IGNORE); END",
      "has a trigger stay that this service did not make",
    ],
    ["PRAGMA user_version = 0", "holds no store of this service"],
    [
      `PRAGMA user_version = ${SCHEMA_VERSIONS.length + 1}`,
      `was made by a newer version of this service (schema ${SCHEMA_VERSIONS.length + 1})`,
    ],
  ])("are a fault after %s", (sql, fault) => {
    change(sql);
    expect(schemaFault(path)).toBe(fault);
  });

  test("of the clock and of claims may be missing: an older version has not made them", () => {
    change("DROP TABLE clock; DROP TABLE claims");
    expect(schemaFault(path)).toBeUndefined();
  });
});

test("an examination writes nothing, not even what a killed process has left beside the file", async () => {
  const store = open();
  await store.create(newSession(subject()), nonce(), { cap: 1 });
  const left = `${path}.left`;
  for (const end of ["", "-wal"]) copyFileSync(`${path}${end}`, `${left}${end}`);
  const before = readFileSync(left);
  for (const examine of [checkDatabase, schemaFault]) {
    expect(examine(left)).toBeUndefined();
    expect(readFileSync(left).equals(before)).toBe(true);
    expect(statSync(`${left}-wal`).size).toBe(statSync(`${path}-wal`).size);
  }
});

test("whether another connection has the file open", async () => {
  expect(isInUse(path)).toBe(false);
  const store = open();
  expect(isInUse(path)).toBe(true);
  await store.close();
  expect(isInUse(path)).toBe(false);
  writeFileSync(`${path}.text`, "x".repeat(10_000));
  expect(() => isInUse(`${path}.text`)).toThrow(/not a database/);
});

test("no examination leaves the file open", async () => {
  expect(openFiles()).toBe(0);
  checkDatabase(path);
  schemaFault(path);
  isInUse(path);
  holdsSessions(path, () => wallMs(NOW));
  expect(() =>
    openDatabase(path, () => {
      throw new Error("a fault");
    }),
  ).toThrow("a fault");
  change(`PRAGMA user_version = ${SCHEMA_VERSIONS.length + 1}`);
  expect(() => open()).toThrow(/newer version/);
  expect(openFiles()).toBe(0);
});

describe("a copy", () => {
  test("has what the store has acknowledged, and the store goes on", async () => {
    const store = open();
    const session = newSession(subject());
    await store.create(session, nonce(), { cap: 1 });
    await copyDatabase(path, `${path}.copy`, () => {});
    expect(await store.find(session.sid)).toMatchObject({ ok: true });
    expect(checkDatabase(`${path}.copy`)).toBeUndefined();
    const db = new DatabaseSync(`${path}.copy`, { readOnly: true });
    expect(db.prepare("SELECT sid FROM sessions").all()).toEqual([{ sid: session.sid }]);
    db.close();
  });

  test("of a file that is not there fails, and makes none", async () => {
    await expect(copyDatabase(`${path}.none`, `${path}.copy`, () => {})).rejects.toThrow(/unable to open/);
    expect(readdirSync(directory).filter((name) => name.includes(".none") || name.includes(".copy"))).toEqual([]);
  });

  test("reports every tenth of a second how much is written, until it has ended", async () => {
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
    const store = open();
    await store.create(newSession(subject()), nonce(), { cap: 1 });
    const bytes = statSync(path).size + statSync(`${path}-wal`).size;
    const shares: number[] = [];
    // What is there already stands for the part that is written: SQLite then fails, because that is no database.
    const copying = copyDatabase(path, `${path}.copy`, (share) => shares.push(share));
    vi.advanceTimersByTime(99);
    expect(shares).toEqual([]);
    for (const part of [0, bytes / 4, bytes, 2 * bytes]) {
      if (part > 0) writeFileSync(`${path}.copy`, Buffer.alloc(part, 1));
      vi.advanceTimersByTime(shares.length === 0 ? 1 : 100);
    }
    expect(shares).toEqual([0, 0.25, 1, 1]);
    await expect(copying).rejects.toThrow(/not a database/);
    vi.advanceTimersByTime(1_000);
    expect(shares).toHaveLength(4);
  });
});
