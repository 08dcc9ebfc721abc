/** How the file of the embedded store is opened: what is waited for, what is refused, and what is closed after a failure. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { isHalfRestored, openDatabase, whenUnlocked } from "../../../../src/service/store/embedded/schema.ts";
import { SCHEMA_VERSIONS } from "../../../../src/service/store/embedded/schema-versions.ts";

let directory: string;
let path: string;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "opening-"));
  path = join(directory, "sessions.db");
});
afterEach(() => rmSync(directory, { recursive: true }));

/** Opens the file, and closes it after the test. */
function open(): DatabaseSync {
  const db = openDatabase(path, (opened) => opened);
  onTestFinished(() => {
    if (db.isOpen) db.close();
  });
  return db;
}

const versionOf = (db: DatabaseSync) => db.prepare("PRAGMA user_version").get()?.user_version;

describe("a file that is locked", () => {
  const failure = (errcode: number) => Object.assign(new Error("a fault"), { errcode });

  /** Replaces waiting: each wait takes some time of a clock that only the test moves. Returns the times that were waited for. */
  function waiting(ms = 25): number[] {
    vi.useFakeTimers({ toFake: ["performance"] });
    const waits: number[] = [];
    const wait = vi.spyOn(Atomics, "wait").mockImplementation((_, index, value, timeout = 0) => {
      expect([index, value]).toEqual([0, 0]);
      waits.push(timeout);
      vi.advanceTimersByTime(ms);
      return "timed-out";
    });
    onTestFinished(() => {
      wait.mockRestore();
      vi.useRealTimers();
    });
    return waits;
  }

  test.each([5, 6, 261, 262])("is tried again until it is not (code %d)", (code) => {
    const waits = waiting();
    let tries = 0;
    const result = whenUnlocked(() => {
      if (++tries < 4) throw failure(code);
      return "opened";
    });
    expect([result, tries, waits]).toEqual(["opened", 4, [25, 25, 25]]);
  });

  test("is given up after five seconds", () => {
    const waits = waiting(1_000);
    const locked = () => {
      throw failure(5);
    };
    expect(() => whenUnlocked(locked)).toThrow("a fault");
    expect(waits).toHaveLength(6);
  });

  test.each([failure(1), failure(26), new Error("a bug"), { errcode: 5 }])("is not what else fails (%#)", (thrown) => {
    const waits = waiting();
    const failing = () => {
      throw thrown;
    };
    expect(() => whenUnlocked(failing)).toThrow(expect.toSatisfy((error) => error === thrown));
    expect(waits).toEqual([]);
  });
});

describe("a new file", () => {
  test("has the tables of this version, and a journal that readers do not wait for", () => {
    const db = open();
    expect(versionOf(db)).toBe(SCHEMA_VERSIONS.length);
    expect(db.prepare("PRAGMA journal_mode").get()?.journal_mode).toBe("wal");
    expect(db.prepare("PRAGMA busy_timeout").get()?.timeout).toBe(500);
  });

  test("is not made where a restore was interrupted, but beside what it prepares", () => {
    writeFileSync(`${path}.restoring`, "");
    expect(isHalfRestored(path)).toBe(true);
    expect(() => open()).toThrow("a restore was interrupted");
    rmSync(`${path}.restoring`);
    expect(isHalfRestored(path)).toBe(false);
    open();
    writeFileSync(`${path}.restoring`, "");
    expect(isHalfRestored(path)).toBe(false);
    open();
  });
});

test("a failure closes the file, and what opened it learns why", () => {
  let opened: DatabaseSync | undefined;
  const use = (db: DatabaseSync) => {
    opened = db;
    throw new Error("a fault");
  };
  expect(() => openDatabase(path, use)).toThrow("a fault");
  expect(opened?.isOpen).toBe(false);
});

test.each([
  ["trigger", "CREATE TRIGGER stay BEFORE DELETE ON sessions BEGIN SELECT RAISE(IGNORE); END", "stay"],
  ["view", "CREATE VIEW live AS SELECT * FROM sessions", "live"],
])("a file with a %s is refused, and is not locked by that", (type, sql, name) => {
  open().exec(sql);
  expect(() => openDatabase(path, () => {})).toThrow(`it has a ${type} that this service did not make: ${name}`);
  const db = new DatabaseSync(path);
  db.exec(`DROP ${type} ${name}`);
  db.close();
  open();
});

test("a file of a newer version is refused, and stays as it is", () => {
  const newer = SCHEMA_VERSIONS.length + 1;
  open().exec(`PRAGMA user_version = ${newer}`);
  expect(() => openDatabase(path, () => {})).toThrow(`made by a newer version of this service (schema ${newer})`);
  const db = new DatabaseSync(path);
  onTestFinished(() => db.close());
  expect(versionOf(db)).toBe(newer);
});

describe("a file of an older version", () => {
  /** Makes the file as the version before this one did. Returns a connection to it. */
  function older(version = SCHEMA_VERSIONS.length - 1): DatabaseSync {
    const db = new DatabaseSync(path);
    db.exec(
      `PRAGMA journal_mode = WAL; ${SCHEMA_VERSIONS.slice(0, version).join(";")}; PRAGMA user_version = ${version}`,
    );
    return db;
  }

  test("gets the tables of this version, step by step", () => {
    for (let version = 1; version < SCHEMA_VERSIONS.length; version++) {
      path = join(directory, `${version}.db`);
      older(version).close();
      const db = open();
      expect(versionOf(db)).toBe(SCHEMA_VERSIONS.length);
      db.close();
    }
  });

  test("is left alone while somebody has it open, for whom the next attempt waits", () => {
    const db = older();
    expect(() => openDatabase(path, () => {})).toThrow("another process has it open: stop that process first");
    expect(versionOf(db)).toBe(SCHEMA_VERSIONS.length - 1);
    db.close();
    expect(versionOf(open())).toBe(SCHEMA_VERSIONS.length);
  });

  test("whose tables cannot be changed tells why", () => {
    const db = older();
    db.exec("CREATE VIEW live AS SELECT * FROM sessions");
    db.close();
    expect(() => openDatabase(path, () => {})).toThrow("it has a view that this service did not make: live");
  });
});
