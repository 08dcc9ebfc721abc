import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { wallMs } from "../../../src/service/session/time.ts";
import { createEmbeddedStore } from "../../../src/service/store/embedded/store.ts";
import { MARKER_LIFE, REUSE_INTERVAL } from "./sessions.ts";

/** The time at which tests of one file begin. */
export const START = 1_800_000_000_000;

/** Opens a store on a new file, until the test has finished. @param clock the wall clock, which is never set, and the monotonic clock */
export function openNewFile(clock: () => number) {
  const directory = mkdtempSync(join(tmpdir(), "store-"));
  const path = join(directory, "sessions.db");
  const lives = { reuseIntervalMs: REUSE_INTERVAL, markerLifeMs: MARKER_LIFE };
  const store = createEmbeddedStore({ path, clock: () => wallMs(clock()), steady: clock, ...lives });
  onTestFinished(async () => {
    await store.close();
    rmSync(directory, { recursive: true });
  });
  return { path, store };
}
