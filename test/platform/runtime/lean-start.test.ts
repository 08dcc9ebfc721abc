/** The code of a start and of an idle process is not optimized; what a busy process runs is. */
import { spawn } from "node:child_process";
import { type Dirent, readdirSync } from "node:fs";
import { createInterface } from "node:readline";
import { expect, onTestFinished, test } from "vitest";
import { createBusyCheck } from "../../../src/platform/runtime/lean-start.ts";
import { scratch } from "../../support/service.ts";
import { until } from "../../support/until.ts";

const PROGRAM = `
import { startLean } from "./src/platform/runtime/lean-start.ts";
await startLean(async () => {
  (function inStart() { for (let i = 0; i < 10_000_000; i++); })();
});
(function afterwards() { for (let i = 0; i < 10_000_000; i++); })();
setInterval(function whileBusy() { for (let i = 0; i < 10_000_000; i++); });
`;

test("only what a busy process runs is optimized, and nothing of its start", async () => {
  const options = ["--trace-opt", "--no-maglev", "--no-concurrent-recompilation", "--input-type=module"];
  const program = spawn(process.execPath, [...options, "-e", PROGRAM], { stdio: ["ignore", "pipe", "inherit"] });
  onTestFinished(() => void program.kill("SIGKILL"));
  const compiled: string[] = [];
  for await (const line of createInterface(program.stdout)) {
    const [, name] = /^\[completed compiling \S+ <JSFunction (\S+)/.exec(line) ?? [];
    if (name !== undefined) compiled.push(name);
    if (name === "whileBusy") break;
  }
  expect(compiled).toContain("whileBusy");
  expect(compiled).not.toContain("inStart");
  expect(compiled).not.toContain("afterwards");
});

test("an idle process writes its compiled code before it ends", async () => {
  const cache = scratch();
  const program = `
import { startLean } from "./src/platform/runtime/lean-start.ts";
await startLean(async () => {});
setInterval(() => {}, 3_600_000);
`;
  const env = { PATH: process.env.PATH, NODE_COMPILE_CACHE: cache };
  const running = spawn(process.execPath, ["--input-type=module", "-e", program], { env, stdio: "inherit" });
  onTestFinished(() => void running.kill("SIGKILL"));
  const isFile = ({ name }: Dirent) => /^[0-9a-f]{8}$/.test(name);
  await until(() => expect(readdirSync(cache, { recursive: true, withFileTypes: true }).some(isFile)).toBe(true));
  expect(running.exitCode).toBeNull();
});

/** Returns the number of the first check, four in a second, at which a process is busy that uses these processor times between checks, in ms. */
function firstBusyCheck(shares: Iterable<number>): number | undefined {
  let [usedMs, check] = [200, 0];
  const isBusy = createBusyCheck(usedMs);
  for (const share of shares) {
    usedMs += share;
    check++;
    if (isBusy(usedMs)) return check;
  }
}

const hour = (share: number) => Array.from({ length: 4 * 3_600 }, () => share);

test("a process with timers and a garbage collection every ten seconds is idle", () => {
  expect(firstBusyCheck(hour(3).map((share, index) => (index % 40 === 0 ? 60 : share)))).toBeUndefined();
});

test.each([
  ["a whole processor", 250, 1],
  ["half a processor", 125, 1],
  ["a tenth of a processor", 25, 6],
  ["a twentieth of a processor", 12.5, 21],
  ["little more than an idle one", 8, 201],
])("a process that uses %s is busy after some checks", (_, share, checks) => {
  expect(firstBusyCheck(hour(share))).toBe(checks);
});
