/** The reservations of session ids in the file of the embedded store. */
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, onTestFinished, test } from "vitest";
import { wallMs } from "../../../../src/service/session/time.ts";
import { schemaFault } from "../../../../src/service/store/embedded/check.ts";
import { createEmbeddedStore } from "../../../../src/service/store/embedded/store.ts";
import { scratch } from "../../../support/service.ts";
import { MARKER_LIFE, newSession, nonce, REUSE_INTERVAL, subject } from "../../../support/store/sessions.ts";

const RESERVED = 1_000_000;

function aFile() {
  const path = join(scratch(), "sessions.db");
  let now = 1_800_000_000_000;
  const open = () => {
    const lives = { reuseIntervalMs: REUSE_INTERVAL, markerLifeMs: MARKER_LIFE };
    const store = createEmbeddedStore({ path, clock: () => wallMs(now), steady: () => now, ...lives });
    onTestFinished(() => store.close());
    return store;
  };
  const read = (sql: string) => {
    const db = new DatabaseSync(path, { readOnly: true });
    const found = db.prepare(sql).all();
    db.close();
    return found;
  };
  const advance = (ms: number) => {
    now += ms;
  };
  return { path, open, read, advance };
}

test("a reservation outlives the process, and a backup with reservations is complete", async () => {
  const { path, open } = aFile();
  const session = newSession(subject());
  const first = open();
  await first.create(session, nonce(), { cap: 10, reservedMs: RESERVED });
  await first.end(session.sid, "logout");
  await first.close();
  expect(schemaFault(path)).toBeUndefined();
  expect(await open().create(session, nonce(), { cap: 10, reservedMs: RESERVED })).toEqual({
    ok: false,
    reason: "ended",
  });
});

test("reservations that are over are removed by those that follow", async () => {
  const { open, read, advance } = aFile();
  const store = open();
  for (let count = 0; count < 9; count++) {
    await store.create(newSession(subject()), nonce(), { cap: 10, reservedMs: RESERVED });
  }
  advance(RESERVED + 1);
  for (let count = 0; count < 3; count++) {
    await store.create(newSession(subject()), nonce(), { cap: 10, reservedMs: RESERVED });
  }
  expect(read("SELECT count(*) AS count FROM claims")).toEqual([{ count: 3 }]);
});
