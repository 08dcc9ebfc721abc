/** Real Redis servers. Each is a separate process on a free loopback port, with its own directory. */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Redis } from "ioredis";
import { freePort } from "./free-port.ts";
import { onExit } from "./on-exit.ts";
import { untilTrue } from "./until.ts";

export { freePort };

/** The program of the server. `REDIS_SERVER` names another one than Debian's Redis: a newer Redis, or Valkey (CONTRIBUTING.md). */
const SERVER = process.env.REDIS_SERVER ?? "redis-server";

/** Returns the name and version of the server that the tests start, such as `Redis 7.0.15`. */
export function serverVersion(): string {
  const output = execFileSync(SERVER, ["--version"], { encoding: "utf8" });
  const [, name = "", version = ""] = /^(\w+) server v=([\d.]+)/.exec(output) ?? [];
  return `${name} ${version}`;
}

/** The running servers. They are killed when the tests end, however they end. */
const running = new Set<ChildProcess>();
onExit(() => {
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
   * Starts the process, or restarts it with the data on its disk. Resolves when it accepts connections.
   *
   * @param more lines of its configuration file
   */
  async start(more = 'save ""'): Promise<void> {
    const file = join(this.#directory, "redis.conf");
    writeFileSync(file, `port ${this.port}\nbind 127.0.0.1\ndir ${this.#directory}\n${more}\n`);
    const child = spawn(SERVER, [file, ...this.#args], { stdio: ["ignore", "pipe", "inherit"] });
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
    throw new Error(`${SERVER} did not start:\n${log}`);
  }

  /** A connection for the test itself, which is opened on first use. */
  get admin(): Redis {
    this.#admin ??= new Redis(this.port, { maxRetriesPerRequest: null, retryStrategy: () => 20 }).on("error", () => {});
    return this.#admin;
  }

  /** Suspends the process. Its connections stay open. */
  pause(): void {
    this.#process?.kill("SIGSTOP");
  }

  resume(): void {
    this.#process?.kill("SIGCONT");
  }

  /** Ends the process, by SIGKILL like a crash, or by SIGTERM in an orderly way. */
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

export async function startRedis(...args: readonly string[]): Promise<RedisServer> {
  const server = new RedisServer(await freePort(), args);
  try {
    await server.start();
    return server;
  } catch (error) {
    await server.stop();
    throw error;
  }
}

/**
 * Returns the configuration of a sentinel that quickly considers the master named `main` as down.
 *
 * @param more further lines
 * @param ofMaster further settings of `main`
 */
export const sentinelConfig = (master: { readonly port: number }, more = "", ofMaster = ""): string => `
    ${more}
    sentinel monitor main 127.0.0.1 ${master.port} 1
    sentinel down-after-milliseconds main 300
    sentinel failover-timeout main 2000
    ${ofMaster}
  `;

/** Starts a single sentinel with `sentinelConfig`. */
export async function startSentinel(...config: Parameters<typeof sentinelConfig>): Promise<RedisServer> {
  const server = new RedisServer(await freePort(), ["--sentinel"]);
  await server.start(sentinelConfig(...config));
  return server;
}

export type ClusterNode = RedisServer & { readonly busPort: number; readonly tlsPort: number | undefined };

export type RedisCluster = { readonly url: string; readonly nodes: readonly ClusterNode[]; stop(): Promise<void> };

/** Starts a node of a cluster that is not connected to others yet. With `--tls-cluster` among the arguments it has a port for TLS, too. */
export async function startClusterNode(...args: readonly string[]): Promise<ClusterNode> {
  const busPort = await freePort();
  const tlsPort = args.includes("--tls-cluster") ? await freePort() : undefined;
  const own = ["--cluster-enabled", "yes", "--cluster-port", `${busPort}`, "--repl-diskless-sync-delay", "0"];
  const tls = tlsPort === undefined ? [] : ["--tls-port", `${tlsPort}`];
  return Object.assign(await startRedis(...own, ...tls, ...args), { busPort, tlsPort });
}

/** Makes nodes known to a cluster. Resolves when all nodes know each other and report that the cluster is complete. */
export async function joinCluster(members: readonly ClusterNode[], ...more: readonly ClusterNode[]): Promise<void> {
  for (const { port, busPort } of more) await members[0]?.admin.call("CLUSTER", "MEET", "127.0.0.1", port, busPort);
  const all = [...members, ...more];
  const known = new RegExp(`cluster_state:ok.*cluster_known_nodes:${all.length}\\b`, "s");
  await Promise.all(all.map(({ admin }) => untilTrue(async () => known.test(await admin.cluster("INFO")))));
}

/** Makes a node of a cluster a replica of another one. Resolves when it has all data of its master. */
export async function replicate(replica: ClusterNode, master: ClusterNode): Promise<void> {
  const id = String(await master.admin.call("CLUSTER", "MYID"));
  await replica.admin.call("CLUSTER", "REPLICATE", id);
  await untilTrue(async () => /master_link_status:up/.test(await replica.admin.info("replication")));
  await untilTrue(async () => /state=online/.test(await master.admin.info("replication")));
}

/**
 * Starts a replica, and resolves when it has acknowledged a write. WAIT alone does not show that: for a master that never had a replica,
 * every write is at offset 0. A new replica counts as having that offset, and first reports up to a second later.
 */
export async function startReplica(master: RedisServer, ...args: readonly string[]): Promise<RedisServer> {
  await master.admin.config("SET", "repl-diskless-sync-delay", "0");
  const replica = await startRedis("--replicaof", `127.0.0.1 ${master.port}`, ...args);
  await untilTrue(async () => {
    await master.admin.set("anything", "", "PX", 1);
    return new RegExp(`port=${replica.port},state=online,offset=[1-9]`).test(await master.admin.info("replication"));
  });
  return replica;
}

/** How long one attempt of a replica to take over lasts, in ms. The timeout of Redis (CLUSTER_MF_TIMEOUT) is 5 s. */
const FAILOVER_TIMEOUT_MS = 6_000;

/** Makes a replica the master, as an operator would, and repeats this if the vote fails. Resolves when both nodes know their new roles. */
export async function failOver(replica: ClusterNode, master: ClusterNode): Promise<void> {
  const isMaster = async ({ admin }: ClusterNode) => (await admin.info("replication")).includes("role:master");
  let askedAt = Number.NEGATIVE_INFINITY;
  await untilTrue(async () => {
    if (await isMaster(replica)) return !(await isMaster(master));
    if (performance.now() - askedAt > FAILOVER_TIMEOUT_MS) {
      askedAt = performance.now();
      await replica.admin.call("CLUSTER", "FAILOVER");
    }
    return false;
  });
}

/** Moves slots with all their contents to another master, as `redis-cli --cluster reshard` does. */
export async function moveSlots(
  masters: readonly ClusterNode[],
  from: ClusterNode,
  to: ClusterNode,
  slots: readonly number[],
): Promise<void> {
  const [fromId, toId] = await Promise.all([from, to].map(({ admin }) => admin.call("CLUSTER", "MYID").then(String)));
  const others = masters.filter((node) => node !== from && node !== to);
  for (const slot of slots) {
    await to.admin.call("CLUSTER", "SETSLOT", slot, "IMPORTING", `${fromId}`);
    await from.admin.call("CLUSTER", "SETSLOT", slot, "MIGRATING", `${toId}`);
    for (;;) {
      const keys = (await from.admin.call("CLUSTER", "GETKEYSINSLOT", slot, 1000)) as string[];
      if (keys.length === 0) break;
      // On a busy machine a node may consider the others as lost, and then it accepts no keys until it hears from them again.
      await untilClusterIsUp(to);
      await from.admin.call("MIGRATE", "127.0.0.1", to.port, "", 0, 5000, "KEYS", ...keys).catch((error) => {
        if (!/CLUSTERDOWN/.test(String(error))) throw error;
      });
    }
    for (const { admin } of [to, from, ...others]) await admin.call("CLUSTER", "SETSLOT", slot, "NODE", `${toId}`);
  }
}

function untilClusterIsUp({ admin }: ClusterNode): Promise<void> {
  return untilTrue(async () => /cluster_state:ok/.test(await admin.cluster("INFO")));
}

/** Starts a cluster of three masters, each with a third of the slots. Resolves when all of them report that it is complete. */
export async function startRedisCluster(...args: readonly string[]): Promise<RedisCluster> {
  const nodes = await Promise.all([0, 1, 2].map(() => startClusterNode(...args)));
  const bounds = [0, 5461, 10923, 16384];
  await Promise.all(
    nodes.map(async ({ admin }, at) => {
      await admin.call("CLUSTER", "SET-CONFIG-EPOCH", at + 1);
      await admin.call("CLUSTER", "ADDSLOTSRANGE", bounds[at] ?? 0, (bounds[at + 1] ?? 0) - 1);
    }),
  );
  await joinCluster(nodes.slice(0, 1), ...nodes.slice(1));
  await Promise.all(
    nodes.map(({ admin }) =>
      untilTrue(async () => /cluster_state:ok.*cluster_size:3/s.test(await admin.cluster("INFO"))),
    ),
  );
  return {
    url: `redis://${nodes.map(({ port }) => `127.0.0.1:${port}`).join(",")}`,
    nodes,
    stop: async () => {
      await Promise.all(nodes.map((node) => node.stop()));
    },
  };
}

/**
 * Starts a cluster of three masters, each with one replica that has all of its data: nodes 3, 4 and 5 are the replicas of nodes 0, 1 and 2.
 */
export async function startReplicatedCluster(...args: readonly string[]): Promise<RedisCluster> {
  const [{ url, nodes: masters }, ...replicas] = await Promise.all([
    startRedisCluster(...args),
    ...[0, 1, 2].map(() => startClusterNode(...args)),
  ]);
  const nodes = [...masters, ...replicas];
  await joinCluster(masters, ...replicas);
  await Promise.all(replicas.map((replica, at) => replicate(replica, masters[at] as ClusterNode)));
  // Returns whether a node knows all replicas. A master votes in a failover only for a replica that it knows.
  const knowsReplicas = async ({ admin }: ClusterNode) =>
    String(await admin.call("CLUSTER", "NODES")).match(/ (myself,)?slave /g)?.length === replicas.length;
  await Promise.all(nodes.map((node) => untilTrue(() => knowsReplicas(node))));
  return {
    url,
    nodes,
    stop: async () => {
      await Promise.all(nodes.map((node) => node.stop()));
    },
  };
}
