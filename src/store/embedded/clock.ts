/**
 * The store's time: the wall clock less a shift, so that it goes on as before when that clock is set. A sleep of the
 * machine counts as time that has passed.
 *
 * What the clock showed at one moment is in the file, beside how long the machine had been up then. So every process on
 * this machine finds out that it was set, by itself and to the same effect, and a restart changes nothing. After a reboot
 * it is not known how long that took: time continues from where it was at the earliest.
 */
import { readFileSync } from "node:fs";
import { uptime } from "node:os";
import type { DatabaseSync } from "node:sqlite";
import { steadyClock } from "../../clock/steady.ts";
import type { Clock } from "../../session/ports.ts";
import { type StoreMs, toStoreTime, type WallClock, type WallMs } from "../../session/time.ts";

/** The amount by which a clock may be set, or drift, without notice, ms. */
const TOLERANCE_MS = 250;

const LINUX = process.platform === "linux";

/** Names this start of the machine. Where the system has no such name, every process counts as another start. */
const BOOT = LINUX
  ? readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim()
  : `process ${process.pid} ${performance.timeOrigin}`;

/** Beside the versions of the schema: made where it is not there. */
export const CLOCK_TABLE = `
  CREATE TABLE IF NOT EXISTS clock (
    shift INTEGER NOT NULL,  -- the clock of the day is ahead of the store's time by this
    wall INTEGER NOT NULL,   -- what it showed
    up INTEGER NOT NULL,     -- when the machine had been up for so long
    boot TEXT NOT NULL       -- since this start of it
  )`;

type Row = { readonly shift: number; readonly wall: WallMs; readonly up: number; readonly boot: string };

export class StoreClock {
  readonly #db: DatabaseSync;
  readonly #wall: WallClock;
  readonly #steady: Clock;
  readonly #up: Clock;
  readonly #boot: string;
  /** The wall clock less the steady one, when they were last compared. */
  #base: number;
  #shift = 0;

  /** @param steady a clock that is never set, for tests: it is how long the machine has been up, too */
  constructor(db: DatabaseSync, wall: WallClock, steady: Clock | undefined) {
    this.#db = db;
    this.#wall = wall;
    this.#steady = steady ?? steadyClock;
    this.#up = steady ?? (LINUX ? () => Math.round(uptime() * 1000) : () => Math.round(steadyClock()));
    this.#boot = steady === undefined ? BOOT : "";
    this.#base = wall() - this.#steady();
    db.exec(CLOCK_TABLE);
    this.#compare(wall());
  }

  /** The amount by which the wall clock is ahead of the store's time, ms. */
  get shiftMs(): number {
    return this.#shift;
  }

  /** The store's time, as far as it is known without the file: a wall clock that was set since the last step is not noticed. */
  read(): StoreMs {
    return toStoreTime(this.#wall(), this.#shift);
  }

  /** The store's time. Writes to the file when the wall clock was set, in the transaction if one is open. */
  now(): StoreMs {
    const wall = this.#wall();
    if (Math.abs(wall - this.#steady() - this.#base) > TOLERANCE_MS) this.#compare(wall);
    return toStoreTime(wall, this.#shift);
  }

  #compare(wall: WallMs): void {
    const up = this.#up();
    const row = this.#db.prepare("SELECT shift, wall, up, boot FROM clock").get() as Row | undefined;
    const shift = row === undefined ? 0 : row.shift + stepSince(row, { wall, up, boot: this.#boot });
    if (row === undefined) this.#db.prepare("INSERT INTO clock VALUES (?, ?, ?, ?)").run(shift, wall, up, this.#boot);
    else this.#db.prepare("UPDATE clock SET shift = ?, wall = ?, up = ?, boot = ?").run(shift, wall, up, this.#boot);
    this.#shift = shift;
    this.#base = wall - this.#steady();
  }
}

/** The amount by which the wall clock was set, ms. */
function stepSince(row: Row, { wall, up, boot }: Omit<Row, "shift">): number {
  const passed = wall - row.wall;
  if (boot !== row.boot) return Math.min(0, passed);
  const step = passed - (up - row.up);
  return Math.abs(step) > TOLERANCE_MS ? step : 0;
}
