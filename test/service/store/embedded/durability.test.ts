/** Acknowledged writes are on the disk. The test traces the system calls of a process that runs every step. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";

let directory: string;
/** The system calls in their order: writes to the store's files, their syncs, and the lines that the process prints. */
let calls: readonly string[];

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "durability-"));
  const trace = join(directory, "trace");
  const strace = ["-f", "-y", "-s", "100", "-e", "trace=fsync,fdatasync,pwrite64,write", "-o", trace];
  const script = [join(import.meta.dirname, "durable-steps.ts"), join(directory, "data", "sessions.db")];
  const run = spawnSync("strace", [...strace, process.execPath, ...script], { encoding: "utf8" });
  if (run.status !== 0) throw new Error(`strace: ${run.error?.message ?? run.stderr}`);
  calls = readFileSync(trace, "utf8").split("\n");
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

/** Returns the calls between the lines that the process prints before a step and after its acknowledgement. */
function callsOf(step: string): readonly string[] {
  const at = (line: string) => calls.findIndex((call) => call.includes(`"<${line}>\\n"`));
  const [start, end] = [at(step), at(`/${step}`)];
  expect(start).toBeGreaterThan(0);
  expect(end).toBeGreaterThan(start);
  return calls.slice(start + 1, end);
}

const isWrite = (call: string) => /pwrite64\(.*sessions\.db/.test(call);
const isSync = (call: string) => /f(?:data)?sync\(.*sessions\.db/.test(call);

test.each([
  "create",
  "reuse",
  "elevate",
  "update",
  "registerKey",
  "unbind",
  "end",
  "endOwned",
  "endAll",
  "forget",
  "evict",
  "endMany",
  "note",
  "attach",
  "endAttached",
  "revokeAll",
])("%s is synced before it is acknowledged", (step) => {
  const own = callsOf(step);
  expect(own.findLastIndex(isWrite)).toBeGreaterThanOrEqual(0);
  expect(own.findLastIndex(isSync)).toBeGreaterThan(own.findLastIndex(isWrite));
});

test("a refresh is written, and waits for no disk: losing it heals", () => {
  const own = callsOf("rotate");
  expect(own.some(isWrite)).toBe(true);
  expect(own.some(isSync)).toBe(false);
});
