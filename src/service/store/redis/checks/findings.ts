/** What INFO of a Redis node shows that an operator has to correct. The start and `doctor` report the same findings. */
import type { Redis } from "ioredis";
import { isDenied, isUnknownCommand } from "../connection/failure.ts";
import type { CommandSender } from "../connection/send.ts";

/** Returns the value of a field of INFO; empty if the node does not report it. */
export type Info = (field: string) => string;

/** `fault`: the node must not be used. `warning`: it may be used, but could lose data. */
export type NodeFinding = {
  readonly level: "fault" | "warning";
  /** The end of a sentence that begins with the node. */
  readonly found: string;
  readonly remedy: string;
};

/**
 * @param command a command whose reply has the form of INFO
 * @returns undefined if the user may not call it, or the server does not know it
 */
export async function readInfo(
  node: Redis,
  sender: CommandSender,
  command: string,
  args: readonly string[],
): Promise<Info | undefined> {
  try {
    const text = String(await sender.send(node, command, args));
    return (field) => new RegExp(`^${field}:(.*?)\\r?$`, "m").exec(text)?.[1] ?? "";
  } catch (error) {
    if (isDenied(error) || isUnknownCommand(error)) return undefined;
    throw error;
  }
}

export const isOld = (info: Info) => Number.parseInt(info("redis_version"), 10) < 7;

/** Names the server. Valkey reports as its `redis_version` the version of Redis that it is compatible with. */
export const serverOf = (info: Info) =>
  info("server_name") === "valkey" ? `Valkey ${info("valkey_version")}` : `Redis ${info("redis_version")}`;

const SLOTS = 16_384;

/** @param cluster what CLUSTER INFO of a master shows. A cluster that lacks slots serves nothing, or not everything */
export function clusterFindingsOf(cluster: Info): NodeFinding[] {
  const served = Number(cluster("cluster_slots_ok"));
  if (cluster("cluster_state") === "ok" && served === SLOTS) return [];
  const found =
    served === SLOTS ? "reports that the cluster is down" : `knows nodes for ${served} of the ${SLOTS} slots`;
  return [{ level: "fault", found, remedy: "bring back the masters that it lacks, or let others have their slots" }];
}

/** @param clustered whether the service connects to a cluster */
export function findingsOf(info: Info, clustered: boolean): NodeFinding[] {
  const findings: NodeFinding[] = [];
  const fault = (found: string, remedy: string) => void findings.push({ level: "fault", found, remedy });
  const warning = (found: string, remedy: string) => void findings.push({ level: "warning", found, remedy });
  if (isOld(info)) fault(`is ${serverOf(info)}`, "upgrade it to 7.0 or newer");
  const policy = info("maxmemory_policy");
  if (policy === "") {
    warning(
      "does not report its maxmemory-policy",
      "make sure that it is noeviction, or sessions and logouts are dropped when memory runs short",
    );
  } else if (policy !== "noeviction") {
    fault(
      `has maxmemory-policy ${policy}, which drops sessions and logouts when memory runs short`,
      "by CONFIG SET and in its configuration file, set it to noeviction",
    );
  }
  if (info("aof_enabled") === "0") {
    warning(
      "writes no append-only file, so a restart takes it back to its last snapshot, or to nothing if it makes none " +
        "(sessions created since are lost, and logouts since are undone)",
      "CONFIG SET appendonly yes, and in its configuration file",
    );
  }
  if (info("cluster_enabled") === "1" && !clustered) {
    fault("is part of a cluster", "let REDIS_URL begin with redis+cluster://, or rediss+cluster:// with TLS");
  }
  return findings;
}
