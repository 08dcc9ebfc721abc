/** The transaction that the refreshes of one turn of the event loop share. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, onTestFinished, test } from "vitest";
import { StoreUnavailable } from "../../../../src/service/session/ports.ts";
import { wallMs } from "../../../../src/service/session/time.ts";
import { createStoreClock } from "../../../../src/service/store/embedded/clock.ts";
import { createTransactions, FileGuard } from "../../../../src/service/store/embedded/transactions.ts";

/** Returns transactions on a new file with a table of numbers, and a function that reads them by another connection. */
function open() {
  const directory = mkdtempSync(join(tmpdir(), "transactions-"));
  const path = join(directory, "numbers.db");
  const connect = () => {
    const db = new DatabaseSync(path, { timeout: 0 });
    onTestFinished(() => db.close());
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

test("two connections of one thread do not wait for each other", async () => {
  const { share, on, other, add, committed } = open();
  const second = on(other);
  const insert = () => other.exec("INSERT INTO numbers VALUES (2)");
  await Promise.all([share(() => add(1)), second.share(insert), share(() => add(3))]);
  expect(committed()).toEqual([1, 2, 3]);
});
