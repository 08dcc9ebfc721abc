/** The processes of a run. They are pinned to cores if possible, and end with the run. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { freePort } from "../../support/free-port.ts";
import type { Load, Order, Plan, Slice } from "./plan.ts";

export const ROOT = join(import.meta.dirname, "../../..");

/**
 * The CPU core on which a process runs. Each server has a separate core. The load generators and Redis share another core. With `anywhere`
 * the system chooses.
 */
export type Place = "server" | "load" | "anywhere";

const CORES: Partial<Record<Place, string>> = { server: "0", load: "1" };
export const pinned = availableParallelism() >= 2 && spawnSync("taskset", ["-c", "0,1", "true"]).status === 0;

const children = new Set<ChildProcess>();
const directories = new Set<string>();
process.once("exit", () => {
  for (const child of children) child.kill("SIGKILL");
  for (const directory of directories) rmSync(directory, { recursive: true, force: true });
});
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(1));

export function scratch(): string {
  const directory = mkdtempSync(join(tmpdir(), "session-bench-"));
  directories.add(directory);
  return directory;
}

const logs = scratch();
let launched = 0;

type Options = {
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** How the process reports to its parent: by its standard output, or by a channel for messages. */
  readonly out?: "pipe" | "ipc";
};

type Launched = {
  readonly child: ChildProcess;
  /** Rejects when the process ends unexpectedly, with its output. */
  readonly failed: Promise<never>;
};

function launch(place: Place, command: string, args: readonly string[], options: Options = {}): Launched {
  const core = pinned ? CORES[place] : undefined;
  const [program, ...rest] = core === undefined ? [command, ...args] : ["taskset", "-c", core, command, ...args];
  const log = join(logs, String(++launched));
  const child = spawn(program as string, rest, {
    cwd: options.cwd ?? ROOT,
    env: { PATH: process.env.PATH, ...options.env },
    // The log goes to a file. If it came through a pipe, reading it would take time from the load.
    stdio: ["ignore", options.out ?? "ignore", openSync(log, "w")],
  });
  children.add(child);
  const failed = once(child, "close").then(() => {
    children.delete(child);
    throw new Error(`${command} ${args[0]} ended\n${readFileSync(log, "utf8")}`);
  });
  failed.catch(() => {}); // If no caller waits, the rejection must not count as unhandled.
  return { child, failed };
}

export type Server = { readonly pid: number; stop(): Promise<void> };

function server({ child, failed }: Launched): Server {
  return {
    pid: child.pid ?? 0,
    async stop() {
      child.kill("SIGTERM");
      await failed.catch(() => {});
    },
  };
}

/** Starts a program and waits for the first line of its output. @throws if it ends before */
export async function start(
  place: Place,
  args: readonly string[],
  options: Omit<Options, "out"> = {},
): Promise<Server & { readonly line: string }> {
  const launched = launch(place, process.execPath, args, { ...options, out: "pipe" });
  const lines = createInterface({ input: launched.child.stdout as Readable });
  const line = await Promise.race([once(lines, "line").then(([first]) => String(first)), launched.failed]);
  return { ...server(launched), line };
}

async function untilAccepts(port: number): Promise<void> {
  for (;;) {
    const socket = connect(port, "127.0.0.1");
    const accepted = await once(socket, "connect").then(
      () => true,
      () => false,
    );
    socket.destroy();
    if (accepted) return;
    await sleep(20);
  }
}

export type RedisServer = Server & { readonly port: number };

/** Starts a Redis that stores nothing on disk. */
export async function startRedis(): Promise<RedisServer> {
  const port = await freePort();
  const args = ["--port", String(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", scratch()];
  const launched = launch("load", "redis-server", args);
  await Promise.race([untilAccepts(port), launched.failed]);
  return { ...server(launched), port };
}

export type Generator = Pick<Server, "stop"> & {
  load(plan: Plan): Promise<void>;
  run(slice: Slice): Promise<Load>;
};

export function startGenerator(place: Place = "load"): Generator {
  const generator = join(import.meta.dirname, "generator.ts");
  const launched = launch(place, process.execPath, [generator], { out: "ipc" });
  const { child, failed } = launched;
  const send = async (order: Order): Promise<unknown> => {
    child.send(order);
    const [reply] = await Promise.race([once(child, "message"), failed]);
    return reply;
  };
  return {
    ...server(launched),
    load: async (plan) => void (await send({ plan })),
    run: async (slice) => (await send({ slice })) as Load,
  };
}
