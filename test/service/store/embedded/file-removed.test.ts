/** If the file of the embedded store is removed or replaced while it is in use, the store acknowledges nothing more. */
import { cpSync, mkdtempSync, renameSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { type SessionStore, StoreUnavailable } from "../../../../src/service/session/ports.ts";
import { storeMs, wallMs } from "../../../../src/service/session/time.ts";
import { holdsSessions } from "../../../../src/service/store/embedded/holds-sessions.ts";
import { createEmbeddedStore } from "../../../../src/service/store/embedded/store.ts";
import {
  IDLE,
  MARKED,
  MARKER_LIFE,
  newSession,
  nonce,
  REUSE_INTERVAL,
  sidOf,
  subject,
} from "../../../support/store/sessions.ts";

const NOW = 1_800_000_000_000;
let directory: string;
let path: string;
let store: SessionStore;

function open(): SessionStore {
  return createEmbeddedStore({
    path,
    clock: () => wallMs(NOW),
    steady: () => NOW,
    reuseIntervalMs: REUSE_INTERVAL,
    markerLifeMs: MARKER_LIFE,
  });
}

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "store-"));
  path = join(directory, "data", "sessions.db");
  store = open();
  onTestFinished(async () => {
    await store.close();
    rmSync(directory, { recursive: true });
  });
});

const REMOVALS: readonly (readonly [string, () => void])[] = [
  ["the database", () => rmSync(path)],
  ["its write-ahead log", () => rmSync(`${path}-wal`)],
  ["its shared memory", () => rmSync(`${path}-shm`)],
  ["the directory", () => rmSync(join(directory, "data"), { recursive: true })],
  ["the directory's name", () => renameSync(join(directory, "data"), join(directory, "moved"))],
  [
    "the file by a copy of it",
    () => {
      cpSync(path, `${path}.copy`);
      renameSync(`${path}.copy`, path);
    },
  ],
];

describe.each(REMOVALS)("without %s", (_, remove) => {
  test("no creation and no ending is acknowledged, and the service is not ready", async () => {
    const session = newSession(subject());
    await store.create(session, nonce(), { cap: 1 });
    remove();
    await expect(store.create(newSession(subject()), nonce(), { cap: 1 })).rejects.toThrow(StoreUnavailable);
    await expect(store.end(session.sid, "logout")).rejects.toThrow(/removed or replaced.*restore/s);
    await expect(store.endAll(session.subject, "revoked_subject")).rejects.toThrow(StoreUnavailable);
    await expect(store.ping()).rejects.toThrow(StoreUnavailable);
  });

  test("refreshes, reads and the feed end within a tenth of a second", async () => {
    const session = newSession(subject());
    await store.create(session, nonce(), { cap: 1 });
    remove();
    const removed = performance.now();
    const token = { generation: 1, nonce: nonce(), issuedAt: storeMs(NOW) };
    // The store notices the removal of its file within a tenth of a second. It then refuses every step.
    for (const verb of [
      () => store.rotate(session.sid, token, nonce()),
      () => store.find(session.sid),
      () => store.revocations(undefined),
    ]) {
      for (;;) {
        const begunMs = performance.now() - removed;
        const refused = await verb().then(
          () => false,
          (error: unknown) => error instanceof StoreUnavailable,
        );
        if (refused) break;
        expect(begunMs).toBeLessThanOrEqual(100);
      }
    }
  });
});

test("the check whether the store is ready looks at the files each time", async () => {
  await store.ping();
  renameSync(path, `${path}.moved`);
  await expect(store.ping()).rejects.toThrow(StoreUnavailable);
});

test("a directory that comes back under its name is served again", async () => {
  renameSync(join(directory, "data"), join(directory, "moved"));
  await expect(store.ping()).rejects.toThrow(StoreUnavailable);
  renameSync(join(directory, "moved"), join(directory, "data"));
  await store.ping();
  expect(await store.end(sidOf(subject()), "logout")).toEqual(MARKED);
});

test("a file that cannot be examined, as without the permission for its directory, is an outage, until it can be again", async () => {
  const session = newSession(subject());
  await store.create(session, nonce(), { cap: 1 });
  const data = join(directory, "data");
  renameSync(data, join(directory, "moved"));
  // Root has every permission, but cannot follow a link to itself either.
  symlinkSync(data, data);
  const fault = /cannot be examined.*ELOOP/;
  await expect(store.create(newSession(subject()), nonce(), { cap: 1 })).rejects.toThrow(StoreUnavailable);
  await expect(store.end(session.sid, "logout")).rejects.toThrow(fault);
  const token = { generation: 1, nonce: nonce(), issuedAt: storeMs(NOW) };
  await expect(store.rotate(sidOf(subject()), token, nonce())).rejects.toThrow(StoreUnavailable);
  await expect(store.find(session.sid)).rejects.toThrow(StoreUnavailable);
  await expect(store.ping()).rejects.toThrow(fault);
  rmSync(data);
  renameSync(join(directory, "moved"), data);
  await store.ping();
  // The outcome of a step that was not acknowledged is unknown. This one was committed.
  expect(await store.find(session.sid)).toEqual({ ok: false, reason: "revoked" });
});

describe("whether a file holds sessions", () => {
  test("is false where there is none, and makes none", () => {
    expect(holdsSessions(join(directory, "none.db"), () => wallMs(NOW))).toBe(false);
    expect(() => cpSync(join(directory, "none.db"), join(directory, "copy"))).toThrow("ENOENT");
  });

  test.each([2 * IDLE, -2 * IDLE])(
    "is decided by the store's time, though the clock was set by %d ms",
    async (step) => {
      await store.create(newSession(subject()), nonce(), { cap: 1 });
      const holdsAfter = (ms: number) =>
        holdsSessions(
          path,
          () => wallMs(NOW + step + ms),
          () => NOW + ms,
        );
      expect(holdsAfter(1)).toBe(true);
      expect(holdsAfter(IDLE)).toBe(false);
    },
  );

  test("is true while a session lives", async () => {
    const holdsAfter = (ms: number) =>
      holdsSessions(
        path,
        () => wallMs(NOW + ms),
        () => NOW + ms,
      );
    expect(holdsAfter(0)).toBe(false);
    await store.create(newSession(subject()), nonce(), { cap: 1 });
    expect(holdsAfter(0)).toBe(true);
    expect(holdsAfter(IDLE)).toBe(false);
  });
});
