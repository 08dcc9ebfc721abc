/** The busy loops of `npm run test:busy` use as much CPU time as they should, and all of them end. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { slowness } from "../support/slowness.ts";
import { until } from "../support/until.ts";
import { startBusyLoops } from "./loops.ts";

/** Ticks of processor time that a process has used (proc_pid_stat(5), utime). */
const ticksOf = (pid: number) => Number(readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ")[11]);
const isRunning = (pid: number) => existsSync(`/proc/${pid}`);

test("each loop uses processor time until it is stopped, and then none is left", async () => {
  const { pids, stop } = startBusyLoops(2);
  expect(pids.map(isRunning)).toEqual([true, true]);
  const before = pids.map(ticksOf);
  await until(async () => expect(pids.every((pid, at) => ticksOf(pid) > (before[at] ?? 0) + 20)).toBe(true));
  await stop();
  expect(pids.map(isRunning)).toEqual([false, false]);
});

test("beside them the machine is slow, and what it would take without them is known", async () => {
  const { stop } = startBusyLoops(4 * availableParallelism());
  await until(async () => expect(slowness()).toBeGreaterThan(2));
  await stop();
  expect(slowness()).toBeGreaterThanOrEqual(1);
});

test("none outlives a run that was killed", async () => {
  const program = `
    import { startBusyLoops } from ${JSON.stringify(join(import.meta.dirname, "loops.ts"))};
    console.log(startBusyLoops(2).pids.join(" "));
    setInterval(() => {}, 1000);`;
  const run = spawn(process.execPath, ["--input-type=module", "--eval", program], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [line] = (await once(run.stdout, "data")) as [Buffer];
  const pids = String(line).trim().split(" ").map(Number);
  expect(pids.map(isRunning)).toEqual([true, true]);
  run.kill("SIGKILL");
  await until(async () => expect(pids.filter(isRunning)).toEqual([]));
});
