/** Whether a Redis may hold sessions at all, which is another question than whether it answers. */
import { Cluster } from "ioredis";
import { StoreUnavailable } from "../../session/ports.ts";
import type { Client } from "./connection.ts";
import type { Sender } from "./send.ts";

const SECTIONS = ["server", "memory", "cluster", "replication", "persistence"];

/** This Redis can be reached and must not be used. The message is for the operator. */
export class RedisRefused extends Error {
  override readonly name = "RedisRefused";
}

/** @throws RedisRefused; StoreUnavailable, or what the commands throw, while it cannot serve */
export async function checkFitness(client: Client, sender: Sender): Promise<void> {
  const nodes = client instanceof Cluster ? client.nodes("master") : [client];
  if (nodes.length === 0) throw new StoreUnavailable("Redis: no node of the cluster can be reached");
  await Promise.all(
    nodes.map(async (node) => {
      const info = String(await sender.send(node, "info", SECTIONS));
      const field = (name: string) => new RegExp(`^${name}:(.*?)\\r?$`, "m").exec(info)?.[1] ?? "";
      const at = `the Redis at ${node.options.host}:${node.options.port}`;
      const policy = field("maxmemory_policy");
      if (policy !== "noeviction") {
        throw new RedisRefused(
          `${at} has maxmemory-policy ${policy}, which would drop revocations when memory runs short: set it to noeviction`,
        );
      }
      if (Number.parseInt(field("redis_version"), 10) < 7) {
        throw new RedisRefused(`${at} is version ${field("redis_version")}; 7.0 or newer is needed`);
      }
      if (field("cluster_enabled") === "1" && !(client instanceof Cluster)) {
        throw new RedisRefused(`${at} is part of a cluster: list several of its nodes, comma-separated`);
      }
      // Not for ever: it may be promoted, or we may be led to its master.
      if (field("loading") === "1") throw new StoreUnavailable(`${at} is loading`);
      if (field("role") !== "master") throw new StoreUnavailable(`${at} is a replica`);
    }),
  );
}

/** Credentials that Redis will not take: more waiting will not help. */
export function refusedCredentials(error: unknown): RedisRefused | undefined {
  if (!(error instanceof Error) || !/^(WRONGPASS|NOAUTH|NOPERM)/.test(error.message)) return undefined;
  return new RedisRefused(`Redis refuses our credentials (${error.message.split(" ")[0]})`);
}
