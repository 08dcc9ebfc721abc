/**
 * The store's time: the wall clock minus a shift, so that setting the wall clock does not change it. Sleep counts as elapsed time.
 *
 * The database stores one time of the wall clock, and how long the machine had been running at that time. From these every process on the
 * machine detects that the wall clock was set, and computes the same shift, also after a restart. How long a reboot took is not known:
 * after a reboot, the store's time continues at least from its last value.
 */
import { readFileSync } from "node:fs";
import { uptime } from "node:os";
import type { DatabaseSync } from "node:sqlite";
import { steadyClock } from "../../../platform/clock/turns.ts";
import type { Clock } from "../../session/ports.ts";
import { type StoreMs, toStoreTime, type WallClock, type WallMs } from "../../session/time.ts";

/** The smallest difference between two clocks, in ms, that shows that the wall clock was set. A smaller difference may be drift. */
const TOLERANCE_MS = 250;

const LINUX = process.platform === "linux";

/** Identifies the current boot of the machine. On systems without such an identifier, every process counts as a new boot. */
const BOOT = LINUX
  ? readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim()
  : `process ${process.pid} ${performance.timeOrigin}`;

/**
 * The table of the store's clock is not part of the versioned schema: it is created if it does not exist. Its comments may change, because
 * check.ts compares tables without them.
 */
export const CLOCK_TABLE = `
  CREATE TABLE IF NOT EXISTS clock (
    shift INTEGER NOT NULL,  -- how far the wall clock is ahead of the store's time, in ms
    wall INTEGER NOT NULL,   -- the wall clock when the two were last compared
    up INTEGER NOT NULL,     -- how long the machine had been running at that time, in ms
    boot TEXT NOT NULL       -- the boot of the machine at that time
  )`;

type Row = { readonly shift: number; readonly wall: WallMs; readonly up: number; readonly boot: string };

export type StoreClock = {
  /** Returns how far the wall clock is ahead of the store's time, in ms. */
  shiftMs(): number;
  /** Returns the store's time without access to the file. If the wall clock was set since the last call of `now`, the time is wrong. */
  read(): StoreMs;
  /** Returns the store's time. If the wall clock was set, stores the new shift in the file, within the transaction if one is open. */
  now(): StoreMs;
};

/** @param steady a monotonic clock, for tests. It also stands for how long the machine has been running */
export function createStoreClock(db: DatabaseSync, wall: WallClock, steady: Clock | undefined): StoreClock {
  const clock = steady ?? steadyClock;
  const up = steady ?? (LINUX ? () => Math.round(uptime() * 1000) : () => Math.round(steadyClock()));
  const boot = steady === undefined ? BOOT : "";
  /** The difference between the wall clock and the monotonic clock when they were last compared. */
  let base = wall() - clock();
  let shift = 0;

  const compare = (wallNow: WallMs): void => {
    const upNow = up();
    const row = db.prepare("SELECT shift, wall, up, boot FROM clock").get() as Row | undefined;
    const next = row === undefined ? 0 : row.shift + stepSince(row, { wall: wallNow, up: upNow, boot });
    if (row === undefined) db.prepare("INSERT INTO clock VALUES (?, ?, ?, ?)").run(next, wallNow, upNow, boot);
    else db.prepare("UPDATE clock SET shift = ?, wall = ?, up = ?, boot = ?").run(next, wallNow, upNow, boot);
    shift = next;
    base = wallNow - clock();
  };

  db.exec(CLOCK_TABLE);
  compare(wall());
  return {
    shiftMs: () => shift,
    read: () => toStoreTime(wall(), shift),
    now() {
      const wallNow = wall();
      if (Math.abs(wallNow - clock() - base) > TOLERANCE_MS) compare(wallNow);
      return toStoreTime(wallNow, shift);
    },
  };
}

/** Returns by how many ms the wall clock was set since the row was written. */
function stepSince(row: Row, { wall, up, boot }: Omit<Row, "shift">): number {
  const passed = wall - row.wall;
  if (boot !== row.boot) return Math.min(0, passed);
  const step = passed - (up - row.up);
  return Math.abs(step) > TOLERANCE_MS ? step : 0;
}
