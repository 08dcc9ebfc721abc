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
  const found = await Promise.all(nodes.map((node) => checkNode(node, sender, needed, clustered, warn)));
  return found.find(({ ok }) => !ok) ?? checkConnections(client);
}

/** Checks whether every master is connected. A master may be unreachable from here although other instances reach it. */
function checkConnections(client: Client): Fitness {
  if (!(client instanceof Cluster)) return FIT;
  const connected = new Set(client.nodes("master").flatMap((node) => (node.status === "ready" ? [nodeKey(node)] : [])));
  const missing = mastersOf(client).find((key) => !connected.has(key));
  return missing === undefined ? FIT : unfit(`Redis: no connection to ${missing}`);
}

async function checkNode(
  node: Redis,
  sender: Sender,
  needed: readonly string[],
  clustered: boolean,
  warn: (message: string) => void,
): Promise<Fitness> {
  const at = `the Redis at ${node.options.host}:${node.options.port}`;
  const permit = async () => {
    const denied = (await sender.send(node, "eval", [PERMISSIONS, 0, needed])) as Buffer[];
    if (denied.length === 0) return;
    const user = node.options.username ?? "default";
    const missing = missingPermissions(denied.map((command) => command.toString("latin1")));
    throw new StoreRefused(
      `${at} denies the user ${user} permissions, see "Redis user" in docs/operations.md: ${missing}`,
    );
  };
  const ask = async (name: string, args: readonly string[]): Promise<(field: string) => string> => {
    const text = String(
      await sender.send(node, name, args).catch(async (error: unknown) => {
        if (isDenied(error)) await permit(); // `permit` throws an error that names all missing permissions.
        throw error;
      }),
    );
    return (field) => new RegExp(`^${field}:(.*?)\\r?$`, "m").exec(text)?.[1] ?? "";
  };
  let forgets = false;
  try {
    const info = await ask("info", SECTIONS);
    const policy = info("maxmemory_policy");
    if (policy !== "noeviction") {
      throw new StoreRefused(
        `${at} has maxmemory-policy ${policy}, which would drop revocations when memory runs short: set it to noeviction`,
      );
    }
    if (Number.parseInt(info("redis_version"), 10) < 7) {
      throw new StoreRefused(`${at} is version ${info("redis_version")}; 7.0 or newer is needed`);
    }
    if (info("cluster_enabled") === "1" && !clustered) {
      throw new StoreRefused(
        `${at} is part of a cluster: set REDIS_URL to redis+cluster://, or rediss+cluster:// with TLS`,
      );
    }
    forgets = info("aof_enabled") === "0";
    // The following faults are temporary: the node may be promoted, or the client may be redirected to its master.
    if (info("loading") === "1") return unfit(`${at} is loading`);
    if (info("role") !== "master") return unfit(`${at} is a replica`);
    if (clustered && (await ask("cluster", ["info"]))("cluster_state") !== "ok") {
      return unfit(`${at} reports that the cluster is down`);
    }
  } catch (error) {
    throw refusal(error) ?? error;
  }
  try {
    await permit();
  } catch (error) {
    const refused = refusal(error);
    if (refused !== undefined) throw refused;
    return error instanceof Error ? { ok: false, reason: error } : unfit(String(error));
  }
  if (forgets) {
    warn(
      `${at} writes no append-only file: a restart takes it back to its last snapshot, or to nothing if it makes none. ` +
        "Sessions created since are lost, and logouts since are undone. Set appendonly yes",
    );
  }
  return FIT;
}

/** Returns the fault for an operator to fix: this Redis was refused, or the user may not run the check. Undefined for other errors. */
function refusal(error: unknown): StoreRefused | undefined {
  if (error instanceof StoreRefused) return error;
  if (!isDenied(error)) return undefined;
  return new StoreRefused(
    `Redis denies the user a permission, see "Redis user" in docs/operations.md: ${error.message}`,
  );
}

/** Returns the refusal if Redis does not accept the credentials. Waiting would not help then. */
export function refusedCredentials(error: unknown): StoreRefused | undefined {
  if (!(error instanceof Error)) return undefined;
  const reported = reportedBy(error);
  if (!/^(WRONGPASS|NOAUTH)/.test(reported.message)) return refusal(reported);
  return new StoreRefused(`Redis refuses our credentials (${reported.message.split(" ")[0]})`);
}
