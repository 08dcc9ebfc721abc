/** A process that is killed during a write loses nothing that it has acknowledged. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { SessionId } from "../../../../src/service/session/model.ts";
import type { TokenFields } from "../../../../src/service/session/rotation/rotation.ts";
import { systemClock } from "../../../../src/service/session/time.ts";
import { createEmbeddedStore } from "../../../../src/service/store/embedded/store.ts";
import {
  ENDED,
  MARKER_LIFE,
  newSession,
  nonce,
  outcomeOf,
  REUSE_INTERVAL,
  subject,
} from "../../../support/store/sessions.ts";

type Fact = { created?: SessionId; refreshed?: SessionId; child?: TokenFields; ended?: SessionId };

const WRITER = new URL("./writer.ts", import.meta.url).pathname;

let directory: string;
let path: string;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "store-"));
  path = join(directory, "sessions.db");
});
afterEach(() => rmSync(directory, { recursive: true }));

function open() {
  return createEmbeddedStore({ path, clock: systemClock, reuseIntervalMs: REUSE_INTERVAL, markerLifeMs: MARKER_LIFE });
}

/** Runs writers on the file until they have reported this many acknowledgements, kills them, and returns all reports. */
async function writeAndKill(writers: number, enough: number): Promise<Fact[]> {
  const facts: Fact[] = [];
  await Promise.all(
    Array.from({ length: writers }, async () => {
      const child = spawn(process.execPath, [WRITER, path], { stdio: ["ignore", "pipe", "inherit"] });
      const exited = once(child, "exit");
      for await (const line of createInterface({ input: child.stdout })) {
        try {
          facts.push(JSON.parse(line) as Fact);
        } catch {
          // The line is incomplete, because the process was killed while writing it.
        }
        if (facts.length >= enough) child.kill("SIGKILL");
      }
      child.kill("SIGKILL");
      expect(await exited).toEqual([null, "SIGKILL"]);
    }),
  );
  return facts;
}

async function expectKept(facts: readonly Fact[]): Promise<void> {
  const store = open();
  const ended = new Set(facts.map((fact) => fact.ended));
  const logged = new Set((await store.revocations(undefined)).revocations.map(({ sid }) => sid));
  for (const { created, refreshed, child } of facts) {
    if (created !== undefined) {
      const found = await store.find(created);
      // The process may have ended this session and been killed before it reported that.
      if (ended.has(created)) expect(found).toEqual({ ok: false, reason: "revoked" });
      else expect(found.ok || logged.has(created)).toBe(true);
      if (ended.has(created)) expect(logged).toContain(created);
    }
    if (refreshed !== undefined && child !== undefined && !logged.has(refreshed)) {
      expect(outcomeOf(await store.rotate(refreshed, child, nonce()))).toMatch(/repeat|rotate/);
    }
  }
  const session = newSession(subject());
  await store.create(session, nonce(), { cap: 1 });
  expect(await store.end(session.sid, "logout")).toEqual(ENDED);
  await store.close();
}

test.each([7, 150, 501])("killed after %i acknowledgements", async (enough) => {
  const facts = await writeAndKill(1, enough);
  expect(facts.length).toBeGreaterThanOrEqual(enough);
  await expectKept(facts);
});

test("two processes write to one file, and both are killed", async () => {
  const facts = await writeAndKill(2, 600);
  await expectKept(facts);
  expect(new Set(facts.map(({ created }) => created)).size).toBeGreaterThan(100);
});
