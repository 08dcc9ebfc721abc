/** Checks whether a Redis is suitable for sessions at all. Whether it responds is a separate question. */
import { Cluster, type Redis } from "ioredis";
import { StoreRefused, StoreUnavailable } from "../../../session/ports.ts";
import { type Client, mastersOf, nodeKey } from "../connection/connection.ts";
import { isDenied, isUnknownCommand, reportedBy, SentinelFault } from "../connection/failure.ts";
import type { CommandSender } from "../connection/send.ts";
import { readLua } from "../lua-files.ts";
import { findingsOf, type Info, isOld, type NodeFinding, readInfo } from "./findings.ts";
import { permissionsFor } from "./permissions.ts";

const SECTIONS = ["server", "memory", "cluster", "replication", "persistence"];

const PERMISSIONS = readLua("checks/permissions");

type Fitness = { readonly ok: true } | { readonly ok: false; readonly reason: Error };
const FIT: Fitness = { ok: true };
const unfit = (message: string): Fitness => ({ ok: false, reason: new StoreUnavailable(message) });

/**
 * Checks whether every master can be used now. A command that is sent to a master in an unusable state does no harm, because Redis itself
 * refuses it.
 *
 * @param needed commands, as lua/checks/permissions.lua takes them
 * @param warn is called with warnings for the operator about a Redis that may be used
 * @throws StoreRefused if Redis must not be used, because it could lose data; StoreUnavailable and others if that cannot be determined
 */
export async function checkFitness(
  client: Client,
  sender: CommandSender,
  needed: readonly string[],
  warn: (message: string) => void,
): Promise<Fitness> {
  const nodes = client instanceof Cluster ? client.nodes("master") : [client];
  if (nodes.length === 0) throw new StoreUnavailable("Redis: no node of the cluster can be reached");
  const clustered = client instanceof Cluster;
  const found = await Promise.allSettled(nodes.map((node) => checkNode(node, sender, needed, clustered, warn)));
  const refusals = found.flatMap((each) => (isRefusal(each) ? [each.reason.message] : []));
  if (refusals.length > 0) throw new StoreRefused(refusals.join("; "));
  for (const each of found) {
    if (each.status === "rejected") throw each.reason;
    if (!each.value.ok) return each.value;
  }
  return checkConnections(client);
}

const isRefusal = (each: PromiseSettledResult<unknown>): each is PromiseRejectedResult & { reason: StoreRefused } =>
  each.status === "rejected" && each.reason instanceof StoreRefused;

/** Checks whether every master is connected. A master may be unreachable from here although other instances reach it. */
function checkConnections(client: Client): Fitness {
  if (!(client instanceof Cluster)) return FIT;
  const connected = new Set(client.nodes("master").flatMap((node) => (node.status === "ready" ? [nodeKey(node)] : [])));
  const missing = mastersOf(client).find((key) => !connected.has(key));
  return missing === undefined ? FIT : unfit(`Redis: no connection to ${missing}`);
}

/** @throws StoreRefused with everything that an operator has to correct */
async function checkNode(
  node: Redis,
  sender: CommandSender,
  needed: readonly string[],
  clustered: boolean,
  warn: (message: string) => void,
): Promise<Fitness> {
  const at = nameOf(node);
  const info = await readInfo(node, sender, "info", SECTIONS);
  const findings = info === undefined ? [] : findingsOf(info, clustered);
  const textsOf = (wanted: NodeFinding["level"]) =>
    findings.filter(({ level }) => level === wanted).map(({ found, remedy }) => `${found}: ${remedy}`);
  const faults = textsOf("fault");
  // The following states are temporary: the node may be promoted, or the client may be redirected to its master.
  const state = info === undefined ? undefined : await stateOf(info, node, sender, clustered);
  const checksRights = state === undefined && !(info !== undefined && isOld(info));
  const rights = checksRights ? await rightsOf(node, sender, needed) : { missing: "", unknown: "", error: undefined };
  if (rights.missing !== "") faults.push(denial(node, rights.missing));
  if (rights.unknown !== "")
    faults.push(`does not know commands, which may be renamed or switched off: ${rights.unknown}`);
  if (faults.length > 0) throw new StoreRefused(`${at} ${faults.join("; it ")}`);
  if (state !== undefined) return unfit(`${at} ${state}`);
  if (rights.error !== undefined) return { ok: false, reason: rights.error };
  for (const text of textsOf("warning")) warn(`${at} ${text}`);
  return FIT;
}

const nameOf = ({ options }: Redis) => `the Redis at ${options.host}:${options.port}`;

/** Returns why the node cannot be used at the moment, if it cannot. */
async function stateOf(
  info: Info,
  node: Redis,
  sender: CommandSender,
  clustered: boolean,
): Promise<string | undefined> {
  if (info("loading") === "1") return "is loading";
  if (info("role") !== "master") return "is a replica";
  const cluster = clustered ? await readInfo(node, sender, "cluster", ["info"]) : undefined;
  return cluster === undefined || cluster("cluster_state") === "ok" ? undefined : "reports that the cluster is down";
}

type Rights = { readonly missing: string; readonly unknown: string; readonly error: Error | undefined };

/**
 * Returns the permissions that the user lacks and the commands that the server does not know, or why they cannot be checked. A user who may
 * not run scripts has to get all of them.
 */
export async function rightsOf(node: Redis, sender: CommandSender, needed: readonly string[]): Promise<Rights> {
  try {
    const reply = (await sender.send(node, "eval", [PERMISSIONS, 0, needed])) as Buffer[];
    const found = reply.map((command) => command.toString("latin1"));
    const unknown = found.flatMap((command) => (command.startsWith("!") ? [command.slice(1).split(" ")[0]] : []));
    const missing = permissionsFor(found.filter((command) => !command.startsWith("!")));
    return { missing, unknown: unknown.join(" "), error: undefined };
  } catch (error) {
    if (isDenied(error)) return { missing: permissionsFor(needed), unknown: "", error: undefined };
    if (isUnknownCommand(error)) return { missing: "", unknown: "eval", error: undefined };
    return { missing: "", unknown: "", error: error instanceof Error ? error : new Error(String(error)) };
  }
}

const denial = ({ options }: Redis, missing: string) =>
  `denies the user ${options.username ?? "default"} permissions, see "Redis user" in docs/tasks/operations.md: ${missing}`;

/**
 * Returns the refusal if Redis does not accept the credentials, or denies a command without which there is no connection. Waiting would not
 * help then.
 */
export async function refusalAtStart(
  error: unknown,
  client: Client,
  sender: CommandSender,
  needed: readonly string[],
): Promise<StoreRefused | undefined> {
  if (error instanceof StoreRefused) return error;
  if (!(error instanceof Error)) return undefined;
  const reported = reportedBy(error);
  if (reported instanceof SentinelFault)
    return reported.isFinal ? new StoreRefused(refusalBySentinels(reported)) : undefined;
  const { message } = reported;
  if (/^(WRONGPASS|NOAUTH)/.test(message))
    return new StoreRefused(`Redis refuses our credentials (${message.split(" ")[0]})`);
  if (message.startsWith("ERR DB index")) return new StoreRefused("Redis has no such database as REDIS_URL names");
  if (!message.startsWith("NOPERM")) return undefined;
  const node = client instanceof Cluster ? client.nodes("all")[0] : client;
  const missing = node === undefined ? "" : await missingOn(node, sender, needed);
  return new StoreRefused(
    missing === ""
      ? `Redis denies the user a permission, see "Redis user" in docs/tasks/operations.md: ${message}`
      : missing,
  );
}

function refusalBySentinels({ reply, message }: SentinelFault): string {
  if (/^(WRONGPASS|NOAUTH|ERR AUTH)/.test(reply))
    return `the Sentinels refuse our credentials (${reply.split(" ")[0]})`;
  return message;
}

/** The client of a cluster drops its nodes when CLUSTER SLOTS is denied, so a connection of its own finds what else is denied. */
async function missingOn(node: Redis, sender: CommandSender, needed: readonly string[]): Promise<string> {
  const probe = node
    .duplicate({ lazyConnect: false, enableOfflineQueue: true, retryStrategy: () => null })
    .on("error", () => {});
  try {
    const { missing } = await rightsOf(probe, sender, needed);
    return missing === "" ? "" : `${nameOf(node)} ${denial(node, missing)}`;
  } finally {
    probe.disconnect();
  }
}
