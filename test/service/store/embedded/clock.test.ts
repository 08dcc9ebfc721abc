/** The clock of the embedded store, with clocks of the machine that the test sets. */
import { readFileSync } from "node:fs";
import { uptime } from "node:os";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { wallMs } from "../../../../src/service/session/time.ts";
import { createStoreClock } from "../../../../src/service/store/embedded/clock.ts";

const START = 1_700_000_000_000;
const HOUR = 3_600_000;
/** A smaller difference of two clocks counts as drift. */
const TOLERANCE_MS = 250;

let db: DatabaseSync;
let wall = START;
let up = 0;

beforeEach(() => {
  db = new DatabaseSync(":memory:");
  wall = START;
  up = 0;
});
afterEach(() => db.close());

const open = () =>
  createStoreClock(
    db,
    () => wallMs(wall),
    () => up,
  );
/** Makes time pass, and sets the wall clock by a step. */
function pass(ms: number, step = 0): void {
  up += ms;
  wall += ms + step;
}

describe("after a reboot of the machine", () => {
  beforeEach(() => {
    open();
    db.exec("UPDATE clock SET boot = 'an earlier one'");
    up = 0;
  });

  test("the time of the reboot has passed", () => {
    wall += HOUR;
    expect(open().now()).toBe(START + HOUR);
  });

  test("a wall clock that shows an earlier time continues the store's time", () => {
    wall -= HOUR;
    const clock = open();
    expect([clock.now(), clock.shiftMs()]).toEqual([START, -HOUR]);
    pass(1_000);
    expect(clock.now()).toBe(START + 1_000);
  });
});

describe.each([-HOUR, -TOLERANCE_MS - 1, TOLERANCE_MS + 1, HOUR])("a wall clock that was set by %d ms", (step) => {
  test("does not change the time of a process that runs, and of one that starts", () => {
    const clock = open();
    pass(1_000, step);
    expect(clock.now()).toBe(START + 1_000);
    expect(clock.read()).toBe(START + 1_000);
    expect(clock.shiftMs()).toBe(step);
    pass(1_000);
    expect([clock.now(), open().now()]).toEqual([START + 2_000, START + 2_000]);
  });

  test("while no process runs does not change the time either", () => {
    open();
    pass(1_000, step);
    expect(open().now()).toBe(START + 1_000);
  });
});

test.each([-TOLERANCE_MS, TOLERANCE_MS])("a difference of %d ms is drift", (drift) => {
  const clock = open();
  pass(1_000, drift);
  expect([clock.now(), clock.shiftMs()]).toEqual([START + 1_000 + drift, 0]);
  expect(db.prepare("SELECT wall FROM clock").get()?.wall).toBe(START); // They were not compared.
  expect(open().shiftMs()).toBe(0);
});

test("a clock that was set back and forth is followed, and one that was not set writes nothing", () => {
  const clock = open();
  const row = () => ({ ...db.prepare("SELECT shift, wall, up, boot FROM clock").get() });
  const written = row();
  expect(written).toEqual({ shift: 0, wall: START, up: 0, boot: "" });
  pass(HOUR);
  expect(clock.now()).toBe(START + HOUR);
  expect(row()).toEqual(written);
  pass(0, HOUR);
  expect(clock.now()).toBe(START + HOUR);
  expect(row()).toEqual({ shift: HOUR, wall: START + 2 * HOUR, up: HOUR, boot: "" });
  pass(0, -HOUR);
  expect(clock.now()).toBe(START + HOUR);
  expect(row()).toEqual({ shift: 0, wall: START + HOUR, up: HOUR, boot: "" });
  expect(db.prepare("SELECT count(*) AS count FROM clock").get()?.count).toBe(1);
});

// Only Linux identifies the boot of a machine in a file, so the test is skipped on other systems. CI runs on Linux.
test.runIf(process.platform === "linux")(
  "without a clock of a test, the time is compared with that of the machine",
  () => {
    const [before, clock, after] = [uptime(), createStoreClock(db, () => wallMs(wall), undefined), uptime()];
    const { up: written, boot } = db.prepare("SELECT up, boot FROM clock").get() as { up: number; boot: string };
    expect(written).toBeGreaterThanOrEqual(Math.round(before * 1_000));
    expect(written).toBeLessThanOrEqual(Math.round(after * 1_000));
    expect(boot).toBe(readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim());
    expect(clock.shiftMs()).toBe(0);
  },
);
