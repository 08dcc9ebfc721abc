/** Checks whether a Redis is suitable for sessions at all. Whether it responds is a separate question. */
import { Cluster, type Redis } from "ioredis";
import { StoreRefused, StoreUnavailable } from "../../session/ports.ts";
import { type Client, mastersOf, nodeKey } from "./connection.ts";
import { isDenied, reportedBy } from "./failure.ts";
import { missingPermissions } from "./permissions.ts";
import { readLua } from "./scripts.ts";
import type { Sender } from "./send.ts";

const SECTIONS = ["server", "memory", "cluster", "replication", "persistence"];

const PERMISSIONS = readLua("permissions");

type Fitness = { readonly ok: true } | { readonly ok: false; readonly reason: Error };
const FIT: Fitness = { ok: true };
const unfit = (message: string): Fitness => ({ ok: false, reason: new StoreUnavailable(message) });

/**
 * Checks whether every master can be used now. A command that is sent to a master in an unusable state does no harm, because Redis itself
 * refuses it.
 *
 * @param needed commands, as lua/permissions.lua takes them
 * @param warn is called with warnings for the operator about a Redis that may be used
 * @throws StoreRefused if Redis must not be used, because it could lose data; StoreUnavailable and others if that cannot be determined
 */
export async function checkFitness(
  client: Client,
  sender: Sender,
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

type Field = (name: string) => string;

/** @throws StoreRefused with everything that an operator has to correct */
async function checkNode(
  node: Redis,
  sender: Sender,
  needed: readonly string[],
  clustered: boolean,
  warn: (message: string) => void,
): Promise<Fitness> {
  const at = nameOf(node);
  const ask = async (name: string, args: readonly string[]) => fieldsOf(await sender.send(node, name, args));
  const info = await unlessDenied(() => ask("info", SECTIONS));
  const faults = info === undefined ? [] : faultsOf(info, clustered);
  // The following states are temporary: the node may be promoted, or the client may be redirected to its master.
  const state = info === undefined ? undefined : await stateOf(info, clustered, ask);
  const checksRights = state === undefined && !(info !== undefined && isOld(info));
  const rights = checksRights ? await rightsOf(node, sender, needed) : { missing: "", error: undefined };
  if (rights.missing !== "") faults.push(denial(node, rights.missing));
  if (faults.length > 0) throw new StoreRefused(`${at} ${faults.join("; it ")}`);
  if (state !== undefined) return unfit(`${at} ${state}`);
  if (rights.error !== undefined) return { ok: false, reason: rights.error };
  for (const message of info === undefined ? [] : warningsOf(info)) warn(`${at} ${message}`);
  return FIT;
}

const nameOf = ({ options }: Redis) => `the Redis at ${options.host}:${options.port}`;

function fieldsOf(reply: unknown): Field {
  const text = String(reply);
  return (field) => new RegExp(`^${field}:(.*?)\\r?$`, "m").exec(text)?.[1] ?? "";
}

async function unlessDenied<T>(send: () => Promise<T>): Promise<T | undefined> {
  try {
    return await send();
  } catch (error) {
    if (isDenied(error)) return undefined;
    throw error;
  }
}

const isOld = (info: Field) => Number.parseInt(info("redis_version"), 10) < 7;

/** Returns what an operator has to correct, as the ends of sentences that begin with the node. */
function faultsOf(info: Field, clustered: boolean): string[] {
  const faults: string[] = [];
  const policy = info("maxmemory_policy");
  if (policy !== "noeviction" && policy !== "") {
    faults.push(
      `has maxmemory-policy ${policy}, which would drop revocations when memory runs short: set it to noeviction`,
    );
  }
  if (isOld(info)) faults.push(`is version ${info("redis_version")}; 7.0 or newer is needed`);
  if (info("cluster_enabled") === "1" && !clustered) {
    faults.push("is part of a cluster: set REDIS_URL to redis+cluster://, or rediss+cluster:// with TLS");
  }
  return faults;
}

/** Returns why the node cannot be used at the moment, if it cannot. */
async function stateOf(
  info: Field,
  clustered: boolean,
  ask: (name: string, args: readonly string[]) => Promise<Field>,
): Promise<string | undefined> {
  if (info("loading") === "1") return "is loading";
  if (info("role") !== "master") return "is a replica";
  const cluster = clustered ? await unlessDenied(() => ask("cluster", ["info"])) : undefined;
  return cluster === undefined || cluster("cluster_state") === "ok" ? undefined : "reports that the cluster is down";
}

function warningsOf(info: Field): readonly string[] {
  const forgets =
    "writes no append-only file: a restart takes it back to its last snapshot, or to nothing if it makes none. " +
    "Sessions created since are lost, and logouts since are undone. Set appendonly yes";
  const untold =
    "does not report its maxmemory-policy: make sure that it is noeviction, or revocations are dropped when memory runs short";
  return [...(info("aof_enabled") === "0" ? [forgets] : []), ...(info("maxmemory_policy") === "" ? [untold] : [])];
}

type Rights = { readonly missing: string; readonly error: Error | undefined };

/** Returns the permissions that the user lacks, or why they cannot be checked. A user who may not run scripts has to get all of them. */
export async function rightsOf(node: Redis, sender: Sender, needed: readonly string[]): Promise<Rights> {
  try {
    const denied = (await sender.send(node, "eval", [PERMISSIONS, 0, needed])) as Buffer[];
    return { missing: missingPermissions(denied.map((command) => command.toString("latin1"))), error: undefined };
  } catch (error) {
    if (isDenied(error)) return { missing: missingPermissions(needed), error: undefined };
    return { missing: "", error: error instanceof Error ? error : new Error(String(error)) };
  }
}

const denial = ({ options }: Redis, missing: string) =>
  `denies the user ${options.username ?? "default"} permissions, see "Redis user" in docs/tasks/operations.md: ${missing}`;

/** Returns the refusal if Redis does not accept the credentials, or denies a command without which there is no connection. Waiting would not help then. */
export async function refusalOf(
  error: unknown,
  client: Client,
  sender: Sender,
  needed: readonly string[],
): Promise<StoreRefused | undefined> {
  if (error instanceof StoreRefused) return error;
  if (!(error instanceof Error)) return undefined;
  const { message } = reportedBy(error);
  if (/^(WRONGPASS|NOAUTH)/.test(message))
    return new StoreRefused(`Redis refuses our credentials (${message.split(" ")[0]})`);
  if (!message.startsWith("NOPERM")) return undefined;
  const node = client instanceof Cluster ? client.nodes("all")[0] : client;
  const missing = node === undefined ? "" : await missingOn(node, sender, needed);
  return new StoreRefused(
    missing === ""
      ? `Redis denies the user a permission, see "Redis user" in docs/tasks/operations.md: ${message}`
      : missing,
  );
}

/** The client of a cluster drops its nodes when CLUSTER SLOTS is denied, so a connection of its own finds what else is denied. */
async function missingOn(node: Redis, sender: Sender, needed: readonly string[]): Promise<string> {
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
