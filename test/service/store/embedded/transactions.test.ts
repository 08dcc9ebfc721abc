/** The transaction that the refreshes of one turn of the event loop share. */
import { mkdtempSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { StoreUnavailable } from "../../../../src/service/session/ports.ts";
import { wallMs } from "../../../../src/service/session/time.ts";
import { createStoreClock } from "../../../../src/service/store/embedded/clock.ts";
import { createTransactions, FileGuard, guarded } from "../../../../src/service/store/embedded/transactions.ts";

/** Returns transactions on a new file with a table of numbers, and a function that reads them by another connection. */
function open() {
  const directory = mkdtempSync(join(tmpdir(), "transactions-"));
  const path = join(directory, "numbers.db");
  const connect = () => {
    const db = new DatabaseSync(path, { timeout: 0 });
    onTestFinished(() => {
      if (db.isOpen) db.close();
    });
    return db;
  };
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const db = connect();
  db.exec("PRAGMA journal_mode = WAL; CREATE TABLE numbers (n INTEGER)");
  const other = connect();
  const insert = db.prepare("INSERT INTO numbers VALUES (?)");
  const on = (connection: DatabaseSync) =>
    createTransactions(
      connection,
      createStoreClock(
        connection,
        () => wallMs(0),
        () => 0,
      ),
      new FileGuard(path),
    );
  return {
    ...on(db),
    on,
    path,
    db,
    other,
    add: (n: number) => void insert.run(n),
    committed: () =>
      other
        .prepare("SELECT n FROM numbers ORDER BY n")
        .all()
        .map(({ n }) => n),
  };
}

test("what a turn shares is committed together, before any of it resolves", async () => {
  const { share, add, committed } = open();
  const seen = [1, 2, 3].map(async (n) => {
    await share(() => add(n));
    return committed();
  });
  expect(committed()).toEqual([]);
  expect(await Promise.all(seen)).toEqual([
    [1, 2, 3],
    [1, 2, 3],
    [1, 2, 3],
  ]);
});

test("a call of another kind commits first, so nobody reads what is not committed", async () => {
  const { share, read, write, alone, add, committed } = open();
  const shared = [share(() => add(1))];
  read(() => expect(committed()).toEqual([1]));
  shared.push(share(() => add(2)));
  write("FULL", () => expect(committed()).toEqual([1, 2]));
  shared.push(share(() => add(3)));
  alone(() => expect(committed()).toEqual([1, 2, 3]));
  await Promise.all(shared);
});

test("a function that throws rejects its own call alone", async () => {
  const { share, add, committed } = open();
  const failing = () => {
    throw new Error("a bug");
  };
  const results = await Promise.allSettled([share(failing), share(() => add(1)), share(failing)]);
  expect(results.map(({ status }) => status)).toEqual(["rejected", "fulfilled", "rejected"]);
  expect(committed()).toEqual([1]);
});

test("if the commit fails, all calls reject, and later ones work", async () => {
  const { share, add, db, committed } = open();
  const lost = [share(() => add(1)), share(() => add(2))];
  db.exec("ROLLBACK"); // SQLite does this by itself when the disk is full.
  const results = await Promise.allSettled(lost);
  expect(results).toEqual([1, 2].map(() => ({ status: "rejected", reason: expect.any(StoreUnavailable) })));
  await share(() => add(3));
  expect(committed()).toEqual([3]);
});

test("a commit that SQLite refuses is rolled back, and later ones work", async () => {
  const { share, add, db, committed } = open();
  db.exec("PRAGMA foreign_keys = ON; CREATE TABLE parents (id INTEGER PRIMARY KEY)");
  db.exec("CREATE TABLE children (parent INTEGER REFERENCES parents (id) DEFERRABLE INITIALLY DEFERRED)");
  const orphan = () => db.exec("INSERT INTO children VALUES (1)");
  await expect(Promise.all([share(() => add(1)), share(orphan)])).rejects.toThrow("FOREIGN KEY");
  await share(() => add(2));
  expect(committed()).toEqual([2]);
});

test("a commit that fails and that nobody waits for ends no process", async () => {
  const { share, db } = open();
  const unhandled: unknown[] = [];
  const note = (reason: unknown) => unhandled.push(reason);
  const others = process.listeners("unhandledRejection");
  process.removeAllListeners("unhandledRejection").on("unhandledRejection", note);
  onTestFinished(() => {
    process.removeAllListeners("unhandledRejection");
    for (const listener of others) process.on("unhandledRejection", listener);
  });
  const failing = () => {
    throw new Error("a bug");
  };
  await expect(share(failing)).rejects.toThrow("a bug");
  db.exec("ROLLBACK"); // SQLite does this by itself when the disk is full.
  for (let turn = 0; turn < 3; turn++) await new Promise(setImmediate);
  expect(unhandled).toEqual([]);
});

test("two connections of one thread do not wait for each other", async () => {
  const { share, on, other, add, committed } = open();
  const second = on(other);
  const insert = () => other.exec("INSERT INTO numbers VALUES (2)");
  await Promise.all([share(() => add(1)), second.share(insert), share(() => add(3))]);
  expect(committed()).toEqual([1, 2, 3]);
});

test("SQLite learns for each transaction how much has to be on disk, also if the one before differs", async () => {
  const { write, share, db } = open();
  const level = () => Number(db.prepare("PRAGMA synchronous").get()?.synchronous);
  const [normal, full] = [1, 2];
  expect(write("NORMAL", level)).toBe(normal);
  expect(write("FULL", level)).toBe(full);
  expect(write("FULL", level)).toBe(full);
  expect(await share(level)).toBe(normal);
  expect(write("FULL", level)).toBe(full);
  expect(write("NORMAL", level)).toBe(normal);
});

test("a write that throws changes nothing, and later ones work", () => {
  const { write, add, committed } = open();
  const failing = () => {
    add(1);
    throw new Error("a bug");
  };
  expect(() => write("FULL", failing)).toThrow("a bug");
  expect(write("FULL", () => add(2))).toBeUndefined();
  expect(committed()).toEqual([2]);
});

test("a write whose transaction SQLite has ended tells why it failed", () => {
  const { write, db, committed } = open();
  const failing = () => {
    db.exec("ROLLBACK"); // SQLite does this by itself when the disk is full.
    throw new Error("the first fault");
  };
  expect(() => write("FULL", failing)).toThrow("the first fault");
  expect(committed()).toEqual([]);
});

describe("an error of SQLite", () => {
  test.each([
    ["a value that a column refuses", "INSERT INTO strict VALUES (1, NULL)", 19],
    ["a key that is there, by its extended code", "INSERT INTO strict VALUES (1, 'a'), (1, 'b')", 19],
    ["a row number that is none", "INSERT INTO strict VALUES ('a', 'b')", 20],
  ])("for %s shows a bug, and is thrown as it is", async (_, sql, code) => {
    const { db, share, read, write, alone } = open();
    db.exec("CREATE TABLE strict (id INTEGER PRIMARY KEY, text TEXT NOT NULL)");
    const step = () => db.exec(sql);
    for (const run of [read, alone, (step: () => void) => write("FULL", step), share]) {
      const error = await Promise.resolve()
        .then(() => run(step))
        .then(
          () => undefined,
          (reason: unknown) => reason,
        );
      expect(error).not.toBeInstanceOf(StoreUnavailable);
      expect(Number((error as { readonly errcode: number }).errcode) % 256).toBe(code);
    }
  });

  test("for a database that is locked or closed is an outage, whose cause is known", async () => {
    const { db, other, add, share, write, read } = open();
    other.exec("BEGIN IMMEDIATE");
    expect(() => write("FULL", () => add(1))).toThrow(StoreUnavailable);
    await expect(share(() => add(1))).rejects.toThrow(/^embedded store: database is locked$/);
    other.exec("ROLLBACK");
    db.close();
    expect(() => read(() => add(1))).toThrow(StoreUnavailable);
    await expect(share(() => add(1))).rejects.toMatchObject({ cause: { code: "ERR_INVALID_STATE" } });
  });

  test.each([new Error("a bug"), { code: "ERR_INVALID_STATE" }, Object.assign(new Error(), { errcode: 13 })])(
    "is not seen in what others throw (%#)",
    (thrown) => {
      const run = () =>
        guarded(() => {
          throw thrown;
        });
      expect(run).toThrow(expect.toSatisfy((error) => error === thrown));
    },
  );
});

describe("the files", () => {
  function guard() {
    const { path } = open();
    vi.useFakeTimers({ toFake: ["performance"] });
    onTestFinished(() => void vi.useRealTimers());
    return { files: new FileGuard(path), path };
  }

  test("are looked at again when the last look is more than a tenth of a second ago", () => {
    const { files, path } = guard();
    files.checkRecent();
    renameSync(path, `${path}.moved`);
    vi.advanceTimersByTime(100);
    files.checkRecent();
    vi.advanceTimersByTime(1);
    expect(() => files.checkRecent()).toThrow(StoreUnavailable);
  });

  test("are looked at each time while they are not there", () => {
    const { files, path } = guard();
    files.check();
    renameSync(path, `${path}.moved`);
    for (let look = 0; look < 2; look++) expect(() => files.check()).toThrow(StoreUnavailable);
    expect(() => files.checkRecent()).toThrow(StoreUnavailable);
    renameSync(`${path}.moved`, path);
    files.checkRecent();
    rmSync(`${path}-wal`);
    files.checkRecent();
    expect(() => files.check()).toThrow(`${path}-wal was removed or replaced`);
  });

  test("are looked at once for several refreshes, and for each write that has to be on disk", async () => {
    const { path, on, db } = open();
    vi.useFakeTimers({ toFake: ["performance"] });
    onTestFinished(() => void vi.useRealTimers());
    const { write, read, share } = on(db);
    read(() => {});
    renameSync(path, `${path}.moved`);
    read(() => {});
    write("NORMAL", () => {});
    await share(() => {});
    expect(() => write("FULL", () => {})).toThrow(StoreUnavailable);
    expect(() => write("NORMAL", () => {})).toThrow(StoreUnavailable);
    expect(() => read(() => {})).toThrow(StoreUnavailable);
    await expect(share(() => {})).rejects.toThrow(StoreUnavailable);
  });
});
