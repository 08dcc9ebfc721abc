/** Real Redis servers, each a process of its own on a free loopback port, with a directory of its own. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Redis } from "ioredis";

/** None outlives the tests, however they end. */
const running = new Set<ChildProcess>();
process.once("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});

export class RedisServer {
  readonly port: number;
  readonly url: string;
  readonly #args: readonly string[];
  readonly #directory: string;
  #process: ChildProcess | undefined;
  #admin: Redis | undefined;

  constructor(port: number, args: readonly string[]) {
    this.port = port;
    this.url = `redis://127.0.0.1:${port}`;
    this.#args = args;
    this.#directory = mkdtempSync(join(tmpdir(), "redis-"));
  }

  /**
   * Starts the process, or starts it again on what it left on disk. Resolves when it accepts connections.
   *
   * @param more lines of its configuration file
   */
  async start(more = 'save ""'): Promise<void> {
    const file = join(this.#directory, "redis.conf");
    writeFileSync(file, `port ${this.port}\nbind 127.0.0.1\ndir ${this.#directory}\n${more}\n`);
    const child = spawn("redis-server", [file, ...this.#args], { stdio: ["ignore", "pipe", "inherit"] });
    this.#process = child;
    running.add(child);
    child.once("exit", () => running.delete(child));
    let log = "";
    for await (const line of createInterface({ input: child.stdout })) {
      log += `${line}\n`;
      if (/Ready to accept connections|\+monitor master/.test(line)) {
        child.stdout.resume();
        return;
      }
    }
    throw new Error(`redis-server did not start:\n${log}`);
  }

  /** A connection for the test's own hands, made when first asked for. */
  get admin(): Redis {
    this.#admin ??= new Redis(this.port, { maxRetriesPerRequest: null, retryStrategy: () => 20 }).on("error", () => {});
    return this.#admin;
  }

  /** Stops answering, without closing a connection. */
  pause(): void {
    this.#process?.kill("SIGSTOP");
  }

  resume(): void {
    this.#process?.kill("SIGCONT");
  }

  /** Ends the process: by SIGKILL as a crash would, by SIGTERM in good order. */
  async kill(signal: "SIGKILL" | "SIGTERM" = "SIGKILL"): Promise<void> {
    const child = this.#process;
    this.#process = undefined;
    if (child === undefined || child.exitCode !== null) return;
    const exited = once(child, "exit");
    child.kill(signal);
    await exited;
  }

  async stop(): Promise<void> {
    this.#admin?.disconnect();
    await this.kill();
    rmSync(this.#directory, { recursive: true, force: true });
  }
}

export async function startRedis(...args: string[]): Promise<RedisServer> {
  const server = new RedisServer(await freePort(), args);
  await server.start();
  return server;
}

/** A sentinel that alone decides, quickly, that the master named `main` is down. */
export async function startSentinel(master: RedisServer): Promise<RedisServer> {
  const server = new RedisServer(await freePort(), ["--sentinel"]);
  await server.start(`
    sentinel monitor main 127.0.0.1 ${master.port} 1
    sentinel down-after-milliseconds main 300
    sentinel failover-timeout main 2000
  `);
  return server;
}

export type RedisCluster = { readonly url: string; readonly nodes: readonly RedisServer[]; stop(): Promise<void> };

/** A cluster of three masters, each with a third of the slots. Resolves when all of them agree that it is whole. */
export async function startRedisCluster(): Promise<RedisCluster> {
  const busPorts = [await freePort(), await freePort(), await freePort()];
  const nodes = await Promise.all(
    busPorts.map((port) => startRedis("--cluster-enabled", "yes", "--cluster-port", `${port}`)),
  );
  const bounds = [0, 5461, 10923, 16384];
  await Promise.all(
    nodes.map(async ({ admin }, at) => {
      await admin.call("CLUSTER", "SET-CONFIG-EPOCH", at + 1);
      await admin.call("CLUSTER", "ADDSLOTSRANGE", bounds[at] ?? 0, (bounds[at + 1] ?? 0) - 1);
    }),
  );
  const meet = nodes.map(({ port }, at) => ["CLUSTER", "MEET", "127.0.0.1", port, busPorts[at] ?? 0] as const);
  for (const [command, ...args] of meet.slice(1)) await nodes[0]?.admin.call(command, ...args);
  await Promise.all(
    nodes.map(async ({ admin }) => {
      while (!/cluster_state:ok.*cluster_known_nodes:3.*cluster_size:3/s.test(await admin.cluster("INFO"))) {
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    }),
  );
  return {
    url: `redis://${nodes.map(({ port }) => `127.0.0.1:${port}`).join(",")}`,
    nodes,
    stop: async () => {
      await Promise.all(nodes.map((node) => node.stop()));
    },
  };
}

/** A port that was free a moment ago. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  if (address === null || typeof address === "string") throw new Error("no port");
  return address.port;
}
