/**
 * Limits processes to a share of a core by control groups of Linux. Several workers can then be compared with one on a machine that has
 * too few cores for them: the rest of the machine is left to the load and to Redis. Needs root, or groups that the user may write.
 */
import { existsSync, mkdirSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** The period of a quota, in µs. A process that has used up its quota waits for the next period, so a short one keeps waits short. */
const PERIOD_US = 10_000;
const ROOT = "/sys/fs/cgroup";
const VERSION_1 = join(ROOT, "cpu");

/** Limits a process with all its threads to a share of one core, until this program ends. @throws if the groups cannot be written */
export function limitCpu(pid: number, share: number): void {
  const isVersion1 = existsSync(join(VERSION_1, "cpu.cfs_quota_us"));
  const group = join(isVersion1 ? VERSION_1 : ROOT, `session-bench-${pid}`);
  mkdirSync(group);
  process.once("exit", () => removeGroup(group));
  const quota = String(Math.round(share * PERIOD_US));
  if (isVersion1) {
    writeFileSync(join(group, "cpu.cfs_period_us"), String(PERIOD_US));
    writeFileSync(join(group, "cpu.cfs_quota_us"), quota);
  } else writeFileSync(join(group, "cpu.max"), `${quota} ${PERIOD_US}`);
  writeFileSync(join(group, "cgroup.procs"), String(pid));
}

/** Removes a control group. That is possible only once its processes, which have been killed, have ended. */
function removeGroup(group: string): void {
  for (let attempt = 0; attempt < 1000; attempt++) {
    try {
      rmdirSync(group);
      return;
    } catch {
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
    }
  }
  process.stderr.write(`${group} is left behind\n`);
}
