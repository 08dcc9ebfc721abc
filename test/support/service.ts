/** Starts the real service as a separate process, on free ports. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onExit } from "./on-exit.ts";
import { compiled, PROGRAM } from "./program.ts";
import { inTime } from "./until.ts";

const ROOT = join(import.meta.dirname, "../..");

export type Exit = { readonly code: number | null; readonly signal: NodeJS.Signals | null };

export type Process = {
  readonly pid: number;
  readonly exited: Promise<Exit>;
  stdout(): string;
  stderr(): string;
  kill(signal: NodeJS.Signals): void;
};

export type Service = Process & {
  readonly publicUrl: string;
  readonly adminUrl: string;
  readonly adminToken: string;
  readonly dataDir: string;
  /** The fields of the log line by which the service reports that it is ready. */
  readonly ready: Readonly<Record<string, unknown>>;
  /** Sends SIGTERM. Resolves when the process has ended. */
  stop(): Promise<Exit>;
  kill9(): Promise<Exit>;
  /** Starts another process with the same data and environment, except for `changes`. The process of this object must have ended. */
  restart(changes?: Readonly<Record<string, string>>): Promise<Service>;
};

const children = new Set<ChildProcess>();
const directories = new Set<string>();
onExit(() => {
  for (const child of children) child.kill("SIGKILL");
  // A service that is just being killed may still write a file, so removal is retried.
  for (const directory of directories)
    rmSync(directory, { recursive: true, force: true, maxRetries: 10, retryDelay: 20 });
});

/** Creates a directory that is removed after the tests. */
export function scratch(): string {
  const directory = mkdtempSync(join(tmpdir(), "session-service-"));
  directories.add(directory);
  return directory;
}

/**
 * Returns the Node options and environment variables with which a process records everything that it emits. At the end of a test run, these
 * records are searched for credentials.
 */
export function recording(): { readonly options: readonly string[]; readonly env: Readonly<Record<string, string>> } {
  const { EMISSIONS_DIR } = process.env;
  if (EMISSIONS_DIR === undefined) return { options: [], env: {} };
  const recorder = process.env.RECORDER_FILE ?? join(import.meta.dirname, "emissions/record.ts");
  return { options: ["--import", recorder], env: { EMISSIONS_DIR } };
}

/** Returns the program of a directory of sources. Before version 0.3.0 it was in another place. */
function programOf(root: string | undefined): string {
  if (root === undefined) return PROGRAM;
  return existsSync(join(root, "src/main.ts")) ? "src/main.ts" : "src/service/main.ts";
}

/**
 * Runs the program with only the given environment.
 *
 * @param root a directory whose sources are run, such as those of another version; by default the bundle of this tree is run
 */
export function spawnService(env: Readonly<Record<string, string>>, root?: string): Process {
  const recorded = recording();
  const child = spawn(process.execPath, [...recorded.options, programOf(root)], {
    cwd: root ?? ROOT,
    env: { PATH: process.env.PATH, ...compiled(), ...recorded.env, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  children.add(child);
  const { pid } = child;
  if (pid === undefined) throw new Error("the service did not start");
  const text = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const) {
    child[name].setEncoding("utf8").on("data", (chunk: string) => {
      text[name] += chunk;
    });
  }
  const exited = new Promise<Exit>((resolve) => {
    // At the event "close", everything that the process has written has arrived.
    child.once("close", (code, signal) => {
      children.delete(child);
      resolve({ code, signal });
    });
  });
  return {
    pid,
    exited,
    stdout: () => text.stdout,
    stderr: () => text.stderr,
    kill: (signal) => void child.kill(signal),
  };
}

/** Waits until `found` returns a value for the output of the process. @throws an error with the output, if the process ends before */
export async function waitFor<T>(running: Process, found: () => T | undefined): Promise<T> {
  const output = () => `stdout: ${running.stdout()}\nstderr: ${running.stderr()}`;
  let hasEnded = false;
  let isOver = false;
  void running.exited.then(() => {
    hasEnded = true;
  });
  const arrival = async () => {
    for (;;) {
      // What a process has written before its end counts, so its end is looked at first.
      const wasLast = hasEnded || isOver;
      const value = found();
      if (value !== undefined) return value;
      if (wasLast) throw new Error(`the process has ended\n${output()}`);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  };
  try {
    return await inTime(() => `${found} finds nothing\n${output()}`, arrival());
  } finally {
    isOver = true;
  }
}

const DEFAULTS = { PORT: "0", ADMIN_PORT: "0", DRAIN_DELAY: "0", OVERLOAD_MAX_LOOP_DELAY: "10s" };

/** Starts the service and waits for its ready line. It uses the embedded store and free ports, unless `env` sets something else. */
export async function startService(env: Readonly<Record<string, string>> = {}, root?: string): Promise<Service> {
  const dataDir = env.DATA_DIR ?? join(scratch(), "data");
  // Without a load balancer no drain delay is needed, and a slow machine is no overload. Tests of either set them.
  const given = { ...DEFAULTS, ...env, DATA_DIR: dataDir };
  const running = spawnService(given, root);
  const line = await waitFor(running, () => {
    const end = running.stdout().indexOf("\n");
    return end < 0 ? undefined : running.stdout().slice(0, end);
  }).catch((error: unknown) => {
    running.kill("SIGKILL");
    throw error;
  });
  const ready = JSON.parse(line) as Record<string, unknown>;
  const end = (signal: NodeJS.Signals) => {
    running.kill(signal);
    return running.exited;
  };
  return {
    ...running,
    ready,
    publicUrl: String(ready.public),
    adminUrl: String(ready.admin),
    adminToken: env.ADMIN_TOKENS?.split(",")[0] ?? ownAdminToken(dataDir),
    dataDir,
    stop: () => end("SIGTERM"),
    kill9: () => end("SIGKILL"),
    restart: (changes = {}) => startService({ ...given, ...changes }, root),
  };
}

/** Returns the token that the service generated for itself; empty if other tokens are configured. */
function ownAdminToken(dataDir: string): string {
  const path = join(dataDir, "admin-token");
  return existsSync(path) ? readFileSync(path, "utf8").trim() : "";
}

/** Starts a service that is expected to exit with an error. */
export async function runToExit(
  env: Readonly<Record<string, string>>,
): Promise<Exit & { stdout: string; stderr: string }> {
  const running = spawnService({ PORT: "0", ADMIN_PORT: "0", DATA_DIR: join(scratch(), "data"), ...env });
  const exit = await inTime(
    () => `the end of the process\nstdout: ${running.stdout()}\nstderr: ${running.stderr()}`,
    running.exited,
  ).finally(() => running.kill("SIGKILL"));
  return { ...exit, stdout: running.stdout(), stderr: running.stderr() };
}

/** Creates a data directory with the key ring that several instances on one Redis share. */
export function withKeys(): string {
  const directory = scratch();
  const env = { PATH: process.env.PATH, ...compiled(), DATA_DIR: directory };
  const made = spawnSync(process.execPath, [PROGRAM, "keys", "create"], { cwd: ROOT, env, encoding: "utf8" });
  if (made.status !== 0) throw new Error(`no key ring: ${made.stderr}`);
  return directory;
}
