/** Runs the verifiers in other languages as programs (verifiers/go/internal/harness, verifiers/python/tests/harness.py). */
import { type ChildProcessWithoutNullStreams, execFile, spawn } from "node:child_process";
import { homedir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import type { RefusalRecords } from "../../../src/verifier/index.ts";
import { onExit } from "../on-exit.ts";
import { scratch } from "../service.ts";
import { inTime } from "../until.ts";

const execute = promisify(execFile);

const VERIFIERS = join(import.meta.dirname, "../../../verifiers");
export const GO = join(VERIFIERS, "go");
export const PYTHON = join(VERIFIERS, "python");
/** The path of Debian's Python, because only that one has Debian's `cryptography`. */
export const PYTHON_PROGRAM = "/usr/bin/python3";

export type Language = {
  readonly name: string;
  /** Builds the program. Returns its command line. */
  readonly build: () => Promise<readonly [program: string, ...args: string[]]>;
};

/** The environment of the programs. It excludes settings of this machine, and access to package registries. */
export const languageEnv = {
  PATH: process.env.PATH,
  HOME: homedir(),
  TMPDIR: process.env.TMPDIR,
  GOCACHE: process.env.GOCACHE,
  // With cgo, older versions of Go need a C compiler for the standard library's `net`, which the verifier imports.
  CGO_ENABLED: "0",
  GOFLAGS: "-mod=readonly",
  GOPROXY: "off",
  GOTOOLCHAIN: "local",
  PYTHONDONTWRITEBYTECODE: "1",
};

/** Runs a program to its end. @throws with its output, if it fails */
export function run(cwd: string, program: string, ...args: string[]): Promise<string> {
  return runWith({}, cwd, program, ...args);
}

/** Runs a program with additional environment variables. It ends with the test file, also after a test that took too long. */
export async function runWith(env: Record<string, string>, cwd: string, program: string, ...args: string[]) {
  const running = execute(program, args, { cwd, env: { ...languageEnv, ...env }, maxBuffer: 2 ** 30 });
  onExit(() => running.child.kill("SIGKILL"));
  return (await running).stdout;
}

export const LANGUAGES: readonly Language[] = [
  {
    name: "Go",
    async build() {
      const program = join(scratch(), "harness");
      await run(GO, "go", "build", "-o", program, "./internal/harness");
      return [program];
    },
  },
  {
    name: "Python",
    build: async () => [PYTHON_PROGRAM, join(PYTHON, "tests/harness.py")],
  },
];

export type Result = { readonly verdict: string; readonly claims?: unknown };

/** Runs a verifier on a file of test vectors. Returns the verdicts, in the order of the cases in the file. */
export async function runVectors([program, ...args]: readonly [string, ...string[]], path: string): Promise<Result[]> {
  const output = await run(VERIFIERS, program, ...args, "vectors", path);
  return output
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
}

export type FollowOptions = {
  readonly adminUrl: string;
  readonly adminToken: string;
  readonly issuer: string;
  readonly audience: string;
  readonly jwksUrl?: string;
  readonly policy?: "introspect" | "refuse";
  readonly maxStalenessMs?: number;
};

/** Runs each case of a file of vectors with a verifier of its own. Returns the refusals that it has recorded. */
export async function runRefusals([program, ...args]: readonly [string, ...string[]], path: string) {
  const output = await run(VERIFIERS, program, ...args, "refusals", path);
  return output
    .trimEnd()
    .split("\n")
    .map((line): RefusalRecords => JSON.parse(line));
}

type Decision = { readonly verdict: string; readonly at: string };

const running = new Set<ChildProcessWithoutNullStreams>();
onExit(() => {
  for (const child of running) child.kill("SIGKILL");
});

/** Starts a verifier in a separate process that follows a service. */
export function startFollower([program, ...args]: readonly [string, ...string[]], options: FollowOptions) {
  const child = spawn(program, [...args, "follow", JSON.stringify(options)], { env: languageEnv });
  running.add(child);
  child.stdin.on("error", () => {}); // Writes fail after the program has ended, which `close` reports.
  const events: string[] = [];
  const refusals: object[] = [];
  const asked = new Map<string, (decision: Decision) => void>();
  let wake: (() => void)[] = [];
  let stderr = "";
  let hasEnded = false;
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  const wakeAll = () => {
    const woken = wake;
    wake = [];
    for (const resume of woken) resume();
  };
  createInterface({ input: child.stdout }).on("line", (line) => {
    const { id, event, ...decision } = JSON.parse(line) as Partial<Decision> & { id?: string; event?: string };
    if (event !== undefined) events.push(event);
    if (event === "token_refused") refusals.push(decision);
    if (id !== undefined) asked.get(id)?.(decision as Decision);
    wakeAll();
  });
  child.once("close", () => {
    hasEnded = true;
    running.delete(child);
    wakeAll();
  });
  let count = 0;
  const ask = (line: string) => {
    const id = String(++count);
    const decided = new Promise<Decision>((resolve, reject) => {
      if (hasEnded) reject(new Error(`it has ended: ${stderr}`));
      asked.set(id, (decision) => {
        asked.delete(id);
        resolve(decision);
      });
      child.stdin.write(`${id} ${line}\n`);
    });
    return inTime(() => `the response to ${line.split(" ")[0]}: ${stderr}`, decided);
  };
  return {
    /** The reported events in order, among them `ready`. */
    events,
    /** The reported refusals in order, each with its reason. */
    refusals,
    async verdictOf(token: string): Promise<string> {
      return (await ask(token)).verdict;
    },
    /** Returns when the process first refused the token, in ms since the epoch by its clock. The process checks every millisecond. */
    async refusedAtMs(token: string): Promise<number> {
      return Number((await ask(`until ${token}`)).at) / 1000;
    },
    /** Waits until an event has been reported for the n-th time. */
    async reported(event: string, times = 1): Promise<void> {
      while (events.filter((each) => each === event).length < times) {
        if (hasEnded) throw new Error(`it has ended: ${stderr}`);
        const woken = new Promise<void>((resolve) => wake.push(resolve));
        await inTime(() => `${event}, after ${events}`, woken);
      }
    },
    stop(): void {
      child.kill("SIGKILL");
    },
  };
}

export type Follower = ReturnType<typeof startFollower>;
