import type { Config } from "../../config/config.ts";
import type { RedisTarget } from "../../config/redis-url.ts";
import type { Examination, Info, NodeFacts } from "../../store/redis/checks/examination.ts";
import { KEY_KINDS } from "../../tokens/ring.ts";
import { readRing } from "../../tokens/ring-file.ts";
import { type ConnectionFault, tlsFault, unreachableRemedy } from "./connection-fault.ts";
import type { Report } from "./finding.ts";

/** The revocation feed tolerates this difference between the clocks of two nodes, in ms (docs/tasks/operations.md). */
const MAX_NODE_SKEW_MS = 5_000;
/** The tolerated difference between the clock of Redis, whose times are in tokens, and of this machine, which verifies them, in ms. */
const MAX_OWN_SKEW_MS = 1_000;

export async function checkRedis(report: Report, config: Config, clock: () => number): Promise<void> {
  const { redis: target } = config;
  if (target === undefined) return;
  const { examineRedis } = await import("../../store/redis/checks/examination.ts");
  const examination = await examineRedis(target, config.redisWaitReplicas, clock);
  if (examination.ok) {
    for (const node of examination.nodes) checkNode(report, node, config, target);
    checkClocks(report, examination.nodes);
    await checkOwner(report, config, target, examination.owner);
  } else reportUnreachable(report, target, examination);
}

/** Finds keys of another deployment, which the start refuses. */
async function checkOwner({ fault }: Report, { issuer, keysFile }: Config, target: RedisTarget, owner: string) {
  const { otherOwner, remedyFor } = await import("../../store/redis/checks/owner.ts");
  const ring = await readRing(keysFile).catch(() => undefined); // Another check reports what is wrong with it.
  if (ring === undefined) return;
  const keyIds = KEY_KINDS.flatMap((kind) => ring[kind].map(({ kid }) => kid));
  const other = otherOwner(owner, { issuer, keyIds });
  if (other !== undefined) fault(`the sessions in Redis belong to ${other}`, remedyFor(target));
}

type Unreachable = Extract<Examination, { ok: false }>;

function reportUnreachable(
  { fault }: Report,
  { nodes }: RedisTarget,
  { reason: error, bySentinels }: Unreachable,
): void {
  const { message } = error;
  const names = nodes.map(({ host, port }) => `${host}:${port}`).join(", ");
  if (/^(WRONGPASS|NOAUTH|ERR AUTH)/.test(message)) {
    fault(
      `${names} refuses the user or the password`,
      "correct those of REDIS_URL, or REDIS_USERNAME and REDIS_PASSWORD_FILE; `session-service redis-acl` prints the user to load",
    );
    return;
  }
  if (bySentinels !== undefined) {
    fault(
      `${names}: ${message}`,
      bySentinels === "unknown_master"
        ? "correct the master's name at the end of REDIS_URL"
        : "correct REDIS_SENTINEL_USERNAME, REDIS_SENTINEL_PASSWORD or its file, or the user's permissions there",
    );
    return;
  }
  const { found, remedy } = connectionFault(error, unreachableRemedy(error));
  fault(names + found, remedy);
}

/** What to do about a server that replies with an error, by the beginning of that error. */
const REMEDIES: readonly (readonly [reply: RegExp, remedy: string])[] = [
  [/^LOADING /, "wait until it has read its data"],
  [/^BUSY /, "end the script, which is of another application, by SCRIPT KILL"],
  [/^CLUSTERDOWN /, "bring back the masters that it lacks, or let others have their slots"],
  [/^(MASTERDOWN|READONLY) /, "name its master in REDIS_URL, or use Sentinel"],
  [/^ERR max number of clients/, "raise its maxclients, or find out who keeps so many connections open"],
  [/^ERR DB index/, "correct the database at the end of REDIS_URL"],
];

/** Explains why a server cannot be used with which there was a connection, or an attempt at one. */
function connectionFault(error: Error, remedy: string): ConnectionFault {
  const { message, name } = error;
  if (name !== "ReplyError") return tlsFault(error) ?? { found: ` does not respond (${message})`, remedy };
  const known = REMEDIES.find(([reply]) => reply.test(message));
  return { found: ` replies with an error (${message})`, remedy: known?.[1] ?? "its log may have the reason" };
}

function checkNode(report: Report, node: NodeFacts, config: Config, target: RedisTarget): void {
  const { at, missingPermissions, unknownCommands, error } = node;
  if (error !== undefined) {
    const isOfCluster = target.kind === "cluster";
    const { found, remedy } = connectionFault(
      error,
      isOfCluster ? "start it, or take it out of the cluster" : "start it",
    );
    report.fault(at + found, remedy);
  } else if (unknownCommands !== "") {
    report.fault(
      `${at} does not know commands: ${unknownCommands}`,
      "remove their `rename-command` from its configuration, or use a Redis that has them",
    );
  } else if (missingPermissions !== "") {
    report.fault(
      `${at} denies the user ${target.username ?? "default"} permissions: ${missingPermissions}`,
      "load the user that `session-service redis-acl` prints",
    );
  } else checkState(report, node, config, target);
}

const CAPACITY = "docs/why/capacity.md";
const FREE_SPACE = "free space on its disk; its log has the reason";

const WRITE_STATES = [
  ["aof_last_write_status", "append to the append-only file"],
  ["aof_last_bgrewrite_status", "append-only file"],
  ["rdb_last_bgsave_status", "snapshot"],
] as const;

function checkState(report: Report, node: NodeFacts, config: Config, target: RedisTarget): void {
  const { at, info, server, refusesWrites } = node;
  const before = report.findings.length;
  if (refusesWrites !== "") report.fault(`${at} takes no writes (${refusesWrites})`, writesRemedy(refusesWrites));
  for (const { level, found, remedy } of node.findings) report[level](`${at} ${found}`, remedy);
  const [used, max] = [Number(info("used_memory")), Number(info("maxmemory"))];
  if (max > 0 && used > 0.9 * max && !refusesWrites.startsWith("OOM ")) {
    const share = `${Math.floor((100 * used) / max)} %`;
    report.warning(
      `${at} uses ${share} of its memory limit: at 100 % refreshes get 503`,
      `raise maxmemory (${CAPACITY})`,
    );
  }
  for (const [name, what] of WRITE_STATES) {
    if (info(name) !== "err" || refusesWrites.startsWith("MISCONF ")) continue;
    report.warning(`${at} could not write its last ${what}`, FREE_SPACE);
  }
  const isReplica = info("role") === "slave";
  if (!isReplica) checkReplicas(report, at, info, config);
  else if (target.kind === "single" && info("cluster_enabled") !== "1") {
    report.fault(`${at} is a replica, which takes no writes`, "name its master in REDIS_URL, or use Sentinel");
  }
  if (report.findings.length > before) return;
  const memory = max === 0 ? "no memory limit" : `${info("used_memory_human")} of ${info("maxmemory_human")} used`;
  const persistence = info("aof_enabled") === "1" ? ", append-only file" : "";
  report.ok(`${at}: ${server}, ${isReplica ? "replica" : "master"}, ${memory}${persistence}`);
}

function writesRemedy(refusal: string): string {
  if (refusal.startsWith("OOM ")) return `raise maxmemory (${CAPACITY})`;
  return refusal.startsWith("MISCONF ") ? FREE_SPACE : "start its replicas (docs/tasks/incidents.md#redis-is-down)";
}

function checkReplicas(report: Report, at: string, info: Info, { redisWaitReplicas }: Config): void {
  const connected = Number(info("connected_slaves"));
  if (redisWaitReplicas > connected) {
    report.fault(
      `${at} has ${connected} replicas, and REDIS_WAIT_REPLICAS waits for ${redisWaitReplicas}: logins and logouts get 503`,
      "start the replicas, or lower REDIS_WAIT_REPLICAS",
    );
  }
  if (connected > 0 && info("min_slaves_good_slaves") === "") {
    report.warning(
      `${at} takes writes even when it is cut off from its replicas: a failover then undoes logouts`,
      "CONFIG SET min-replicas-to-write 1, and in its configuration file",
    );
  }
}

function checkClocks({ ok, warning, fault }: Report, nodes: readonly NodeFacts[]): void {
  const known = nodes.flatMap(({ at, clock }) => (clock === undefined ? [] : [{ at, ...clock }]));
  const [first, ...others] = known;
  if (first === undefined) return;
  const apart = others.find(
    ({ aheadMs, uncertaintyMs }) =>
      Math.abs(aheadMs - first.aheadMs) - uncertaintyMs - first.uncertaintyMs > MAX_NODE_SKEW_MS,
  );
  const wrong = known.find(({ aheadMs, uncertaintyMs }) => Math.abs(aheadMs) - uncertaintyMs > MAX_OWN_SKEW_MS);
  if (apart !== undefined) {
    const differenceMs = Math.abs(apart.aheadMs - first.aheadMs);
    fault(`the clocks of ${first.at} and ${apart.at} differ by ${seconds(differenceMs)}`, "let both follow NTP");
  } else if (wrong !== undefined) {
    const direction = wrong.aheadMs > 0 ? "ahead of" : "behind";
    warning(
      `the clock of ${wrong.at} is ${seconds(Math.abs(wrong.aheadMs))} ${direction} that of this machine: verifiers here may refuse fresh tokens`,
      "let both follow NTP",
    );
  } else ok("the clocks agree");
}

const seconds = (ms: number) => `${(ms / 1000).toFixed(1)} s`;
