/** The systemd unit is valid and hardened, and its time limits and system call filter suit the service. */
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { readConfig } from "../../src/service/config/config.ts";
import { startProgram, whileRunning } from "../support/processes.ts";
import { request } from "../support/raw-http.ts";
import { scratch } from "../support/service.ts";
import { cookie, logIn, successor } from "../support/sessions.ts";

const UNIT = readFileSync("deploy/systemd/session-service.service", "utf8");
/** The highest exposure level that `systemd-analyze security` may report. Its option takes the level times ten. */
const MAX_EXPOSURE = 12;

const setting = (name: string): string[] =>
  [...UNIT.matchAll(new RegExp(`^${name}=(.*)$`, "gm"))].map(([, value = ""]) => value);

/** Returns the unit with the path of the service on this machine. */
function unitHere(): string {
  const path = join(scratch(), "session-service.service");
  const installed = "/opt/session-service/node_modules/.bin/session-service";
  expect(UNIT).toContain(`ExecStart=${installed}\n`);
  writeFileSync(path, UNIT.replace(installed, `${process.execPath} ${join(process.cwd(), "src/service/main.ts")}`));
  return path;
}

test("systemd finds no fault in it", () => {
  expect(execFileSync("systemd-analyze", ["verify", "--man=no", unitHere()], { encoding: "utf8" })).toBe("");
});

test("its exposure is low", () => {
  const args = ["security", "--offline=true", "--no-pager", `--threshold=${MAX_EXPOSURE}`, unitHere()];
  expect(execFileSync("systemd-analyze", args, { encoding: "utf8" })).toMatch(/Overall exposure level .*: \d\.\d OK/);
});

test("it waits longer than a drain takes", () => {
  const { drainDelayMs, shutdownTimeoutMs } = readConfig({});
  const [seconds] = setting("TimeoutStopSec").map((value) => Number.parseInt(value, 10));
  expect((seconds ?? 0) * 1000).toBeGreaterThanOrEqual(drainDelayMs + shutdownTimeoutMs + 5000);
});

test("the service starts in its environment", () => {
  const variables = Object.fromEntries(setting("Environment").map((pair) => pair.split("=") as [string, string]));
  expect(readConfig(variables).dataDir).toBe("/var/lib/session-service/data");
});

/** Returns the system calls of a group, with those of the groups in it. */
function callsOf(group: string): string[] {
  const text = execFileSync("systemd-analyze", ["syscall-filter", "--no-pager", group], { encoding: "utf8" });
  const names = [...text.matchAll(/^ {4}([@\w-]+)$/gm)].map(([, name = ""]) => name);
  return names.flatMap((name) => (name.startsWith("@") ? callsOf(name) : [name]));
}

/**
 * System calls that the filter refuses and the service does not need. SQLite calls fchown only if it runs as root, to give its files to the
 * owner of the database.
 */
const DISPENSABLE = ["fchown"];

test("what the service asks of the kernel is allowed", async () => {
  const [allowed = "", refused = ""] = setting("SystemCallFilter");
  const denied = new Set(refused.replace("~", "").split(" ").flatMap(callsOf));
  const permitted = new Set(
    allowed
      .split(" ")
      .flatMap(callsOf)
      .filter((name) => !denied.has(name)),
  );
  const directory = scratch();
  const trace = join(directory, "trace");
  const env = { PORT: "0", ADMIN_PORT: "0", DRAIN_DELAY: "0", DATA_DIR: join(directory, "data") };
  const program = startProgram(
    "strace",
    ["-f", "-qq", "-c", "-U", "name", "-o", trace, process.execPath, "src/service/main.ts"],
    {
      env,
    },
  );
  const ready = await whileRunning(program, async () => {
    const [line = ""] = /^\{"event":"ready".*\}$/m.exec(program.output()) ?? [];
    return JSON.parse(line) as { public: string; admin: string };
  });
  const adminToken = readFileSync(join(env.DATA_DIR, "admin-token"), "utf8").trim();
  const { refreshToken } = await logIn({ adminUrl: ready.admin, adminToken });
  const refresh = (token: string) =>
    request(ready.public, { method: "POST", path: "/v1/auth/refresh", headers: cookie(token) });
  expect((await refresh(successor(await refresh(refreshToken)) ?? "")).status).toBe(200);
  // The signal goes to the child process, because strace itself ignores signals.
  process.kill(Number(readFileSync(`/proc/${program.pid}/task/${program.pid}/children`, "utf8")), "SIGTERM");
  expect(await program.exited).toBe(0);
  const used = [...readFileSync(trace, "utf8").matchAll(/^(?!syscall|total)\w+$/gm)].map(([name]) => name);
  expect(used).toContain("epoll_pwait");
  expect(used.filter((name) => !permitted.has(name) && !DISPENSABLE.includes(name))).toEqual([]);
});
