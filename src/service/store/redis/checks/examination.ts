/** Collects facts about every Redis node for an operator. */
import { once } from "node:events";
import { Cluster, type Redis } from "ioredis";
import type { RedisTarget } from "../../../config/redis-url.ts";
import { type Client, createRedisConnections, disconnect } from "../connection/connection.ts";
import { isDenied, isUnknownCommand, reportedBy, SentinelFault, textOf } from "../connection/failure.ts";
import { type CommandSender, createCommandSender } from "../connection/send.ts";
import { loadScripts } from "../scripts.ts";
import { clusterFindingsOf, findingsOf, type Info, type NodeFinding, readInfo, serverOf } from "./findings.ts";
import { rightsOf } from "./fitness.ts";
import { readOwner } from "./owner.ts";
import { neededCommands } from "./permissions.ts";

export type { Info } from "./findings.ts";

const CONNECT_TIMEOUT_MS = 5_000;
const COMMAND_TIMEOUT_MS = 2_000;

export type NodeFacts = {
  /** The address, host:port. */
  readonly at: string;
  /** Reports nothing if the user may not call INFO. */
  readonly info: Info;
  /** The name and version of the server. */
  readonly server: string;
  /** What the start reports of this node, too. */
  readonly findings: readonly NodeFinding[];
  /** How far the node's clock is ahead of this machine's, and the uncertainty of that value, in ms. */
  readonly clock: { readonly aheadMs: number; readonly uncertaintyMs: number } | undefined;
  /** The permissions that the service's user lacks on a master, in the form of ACL SETUSER. Empty if none is missing, and for replicas. */
  readonly missingPermissions: string;
  /** The commands that the service needs and a master does not know. Empty if it knows all, and for replicas. */
  readonly unknownCommands: string;
  /** Why the node refuses writes now; empty if it accepts them or is a replica. */
  readonly refusesWrites: string;
  readonly error: Error | undefined;
};

/**
 * `bySentinels` says what has to be corrected, if Sentinels have replied and do not name the master. `owner` is the name of the deployment
 * that owns the keys (owner.ts); empty if there is none.
 */
export type Examination =
  | { readonly ok: true; readonly nodes: readonly NodeFacts[]; readonly owner: string }
  | { readonly ok: false; readonly reason: Error; readonly bySentinels: "unknown_master" | "refused" | undefined };

export async function examineRedis(target: RedisTarget, waitReplicas: number, now: () => number): Promise<Examination> {
  const sender = createCommandSender(COMMAND_TIMEOUT_MS);
  const connections = createRedisConnections(target, COMMAND_TIMEOUT_MS);
  const client = connections.connect();
  try {
    const refused = await connected(client);
    if (refused !== undefined) return { ok: false, reason: refused, bySentinels: replyOf(refused) };
    const needed = neededCommands(loadScripts(), target, waitReplicas);
    const nodes = client instanceof Cluster ? client.nodes("all") : [client];
    const [owner, ...facts] = await Promise.all([
      readOwner(client, sender, target).catch(() => ""), // The permissions of each node tell why it cannot be read.
      ...nodes.map((node) => factsOf(node, sender, needed, client instanceof Cluster, now)),
    ]);
    return { ok: true, nodes: facts, owner };
  } finally {
    disconnect(client);
    connections.close();
    sender.close();
  }
}

function replyOf(refused: Error) {
  if (!(refused instanceof SentinelFault) || !refused.isFinal) return undefined;
  return refused.reply.startsWith("ERR No such master") ? "unknown_master" : "refused";
}

/** Returns why there is no connection, or undefined. A server that refuses the credentials is not tried again. */
function connected(client: Client): Promise<Error | undefined> {
  return new Promise((resolve) => {
    let last: Error = new Error(`no connection within ${CONNECT_TIMEOUT_MS / 1000} s`);
    const timer = setTimeout(() => resolve(last), CONNECT_TIMEOUT_MS);
    const end = (reason?: Error) => {
      clearTimeout(timer);
      resolve(reason);
    };
    client.on("ready", () => end());
    client.on("error", (error: Error) => {
      // A server that has refused a connection ends it. Its reply says more than the end.
      if (last.name !== "ReplyError") last = reportedBy(error);
      if (
        last instanceof SentinelFault ? last.isFinal : /^(WRONGPASS|NOAUTH|ERR AUTH|ERR DB|NOPERM)/.test(last.message)
      )
        end(last);
    });
  });
}

async function factsOf(
  node: Redis,
  sender: CommandSender,
  needed: readonly string[],
  clustered: boolean,
  now: () => number,
): Promise<NodeFacts> {
  const at = `${node.options.host}:${node.options.port}`;
  const none = {
    at,
    info: () => "",
    server: "",
    findings: [],
    clock: undefined,
    missingPermissions: "",
    unknownCommands: "",
    refusesWrites: "",
    error: undefined,
  };
  try {
    await nodeReady(node);
    const info = await readInfo(node, sender, "info", []);
    // Permissions are not checked on a replica: it runs no script, and its user has the permissions of the master's user.
    const rights = info?.("role") === "slave" ? {} : await permissionsOf(node, sender, needed);
    const cluster =
      clustered && info?.("role") === "master" ? await readInfo(node, sender, "cluster", ["info"]) : undefined;
    const ofCluster = cluster === undefined ? [] : clusterFindingsOf(cluster);
    const judged = info && { info, server: serverOf(info), findings: [...findingsOf(info, clustered), ...ofCluster] };
    return { ...none, ...judged, clock: await clockOf(node, sender, now), ...rights };
  } catch (error) {
    if (!(error instanceof Error)) return { ...none, error: new Error(String(error)) };
    error.message = textOf(error);
    return { ...none, error };
  }
}

/** Connects a node of a cluster, which otherwise connects at its first use. @throws if it does not connect in time */
async function nodeReady(node: Redis): Promise<void> {
  if (node.status === "ready") return;
  const ready = once(node, "ready", { signal: AbortSignal.timeout(COMMAND_TIMEOUT_MS) });
  if (node.status === "wait") node.connect().catch(() => {}); // A failure to connect is reported by `ready`.
  await ready;
}

/** @throws the error of the check, unless it says why the node refuses writes */
async function permissionsOf(node: Redis, sender: CommandSender, needed: readonly string[]) {
  const { missing: missingPermissions, unknown: unknownCommands, error } = await rightsOf(node, sender, needed);
  if (error === undefined) return { missingPermissions, unknownCommands };
  if (!/^(OOM|MISCONF|NOREPLICAS) /.test(error.message)) throw error;
  return { refusesWrites: error.message };
}

/** Compares the node's clock with this machine's. Returns undefined if the user may not run TIME. */
async function clockOf(node: Redis, sender: CommandSender, now: () => number): Promise<NodeFacts["clock"]> {
  try {
    const before = now();
    const [seconds, micros] = (await sender.send(node, "time", [])) as Buffer[];
    const after = now();
    const theirs = Number(String(seconds)) * 1000 + Number(String(micros)) / 1000;
    return { aheadMs: theirs - (before + after) / 2, uncertaintyMs: (after - before) / 2 };
  } catch (error) {
    if (isDenied(error) || isUnknownCommand(error)) return undefined;
    throw error;
  }
}
