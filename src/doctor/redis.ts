/** Checks the Redis that has the sessions. */
import type { Config } from "../config/config.ts";
import type { RedisTarget } from "../config/redis-url.ts";
import { errorCode } from "../files/error-code.ts";
import type { NodeFacts } from "../store/redis/examination.ts";
import { type Finding, reportOf } from "./finding.ts";

/** The revocation feed tolerates this difference between the clocks of two nodes, in ms (docs/operations.md). */
const MAX_NODE_SKEW_MS = 5_000;
/** Tokens are stamped by Redis's clock and verified by others, so the clocks must agree up to this difference, in ms. */
const MAX_OWN_SKEW_MS = 1_000;

const { ok, warning, fault } = reportOf("redis");

export async function checkRedis(
  config: Config,
  target: RedisTarget,
  clock: () => number,
): Promise<readonly Finding[]> {
  const { examineRedis } = await import("../store/redis/examination.ts");
  const examination = await examineRedis(target, config.redisWaitReplicas, clock);
  if (!examination.ok) return [unreachable(target, examination.reason)];
  const { nodes } = examination;
  const findings = nodes.flatMap((node) => checkNode(node, config, target));
  return [...findings, ...checkClocks(nodes)];
}

function unreachable({ nodes }: RedisTarget, error: Error): Finding {
  const { message } = error;
  const names = nodes.map(({ host, port }) => `${host}:${port}`).join(", ");
  if (/^(WRONGPASS|NOAUTH|ERR AUTH)/.test(message)) {
    return fault(
      `${names} refuses the credentials of REDIS_URL`,
      "correct the user and the password; `session-service redis-acl` prints the user to load",
    );
  }
  if (/certificate|self.signed|altname/i.test(message)) {
    return fault(
      `${names}: the certificate is not accepted (${message})`,
      "set REDIS_TLS_CA_FILE to the authority that signed it",
    );
  }
  return fault(`${names} does not respond (${message})`, unreachableRemedy(error));
}

function unreachableRemedy(error: Error): string {
  const code = errorCode(error);
  if (code === "ECONNREFUSED") return "start it there, or correct REDIS_URL";
  return code === "ENOTFOUND" ? "correct the host in REDIS_URL" : "let this machine reach it through the network";
}

function checkNode(
  { at, info, missingPermissions, refusesWrites, error }: NodeFacts,
  config: Config,
  target: RedisTarget,
): readonly Finding[] {
  if (error !== undefined)
    return [fault(`${at} does not respond (${error.message})`, "start it, or take it out of the cluster")];
  if (missingPermissions !== "") {
    const who = target.username ?? "default";
    return [
      fault(
        `${at} denies the user ${who} permissions: ${missingPermissions}`,
        "load the user that `session-service redis-acl` prints",
      ),
    ];
  }
  const field = (name: string) => info.get(name) ?? "";
  const role = field("role") === "slave" ? "replica" : "master";
  const findings = [
    ...(refusesWrites === "" ? [] : [fault(`${at} takes no writes (${refusesWrites})`, writesRemedy(refusesWrites))]),
    ...checkVersion(at, field),
    ...checkMemory(at, field, refusesWrites.startsWith("OOM ")),
    ...checkPersistence(at, field, refusesWrites.startsWith("MISCONF ")),
    ...(role === "master" ? checkReplicas(at, field, config) : []),
    ...checkRole(at, field, target),
  ];
  return findings.length > 0
    ? findings
    : [ok(`${at}: ${serverOf(field)}, ${role}, ${memoryOf(field)}, append-only file`)];
}

function writesRemedy(refusal: string): string {
  if (refusal.startsWith("OOM ")) return `raise maxmemory (${CAPACITY})`;
  return refusal.startsWith("MISCONF ") ? FREE_SPACE : "start its replicas (docs/operations.md#redis-is-down)";
}

const CAPACITY = "docs/performance.md#capacity";
const FREE_SPACE = "free space on its disk; its log has the reason";

type Field = (name: string) => string;

/** Names the server. Valkey reports as its `redis_version` the version of Redis that it is compatible with. */
const serverOf = (field: Field) =>
  field("server_name") === "valkey" ? `Valkey ${field("valkey_version")}` : `Redis ${field("redis_version")}`;

function checkVersion(at: string, field: Field): readonly Finding[] {
  if (Number.parseInt(field("redis_version"), 10) >= 7) return [];
  return [fault(`${at} is ${serverOf(field)}`, "upgrade it to 7.0 or newer")];
}

const memoryOf = (field: Field) =>
  field("maxmemory") === "0" ? "no memory limit" : `${field("used_memory_human")} of ${field("maxmemory_human")} used`;

/** @param isFull whether an earlier check has found that the memory is full */
function checkMemory(at: string, field: Field, isFull: boolean): readonly Finding[] {
  const policy = field("maxmemory_policy");
  const findings: Finding[] = [];
  if (policy !== "noeviction") {
    findings.push(
      fault(
        `${at} has maxmemory-policy ${policy}, which drops sessions and logouts when memory runs short`,
        "CONFIG SET maxmemory-policy noeviction, and in its configuration file",
      ),
    );
  }
  const [used, max] = [Number(field("used_memory")), Number(field("maxmemory"))];
  if (max > 0 && used > 0.9 * max && !isFull) {
    findings.push(
      warning(
        `${at} uses ${Math.floor((100 * used) / max)} % of its memory limit: at 100 % refreshes get 503`,
        `raise maxmemory (${CAPACITY})`,
      ),
    );
  }
  return findings;
}

const WRITE_STATES = [
  ["aof_last_write_status", "append to the append-only file"],
  ["aof_last_bgrewrite_status", "append-only file"],
  ["rdb_last_bgsave_status", "snapshot"],
] as const;

/** @param cannotWrite whether an earlier check has found that writes fail */
function checkPersistence(at: string, field: Field, cannotWrite: boolean): readonly Finding[] {
  const findings: Finding[] = [];
  if (field("aof_enabled") !== "1") {
    findings.push(
      warning(
        `${at} writes no append-only file: a restart loses sessions, and undoes logouts`,
        "CONFIG SET appendonly yes, and in its configuration file",
      ),
    );
  }
  for (const [name, what] of WRITE_STATES) {
    if (field(name) !== "err" || cannotWrite) continue;
    findings.push(warning(`${at} could not write its last ${what}`, FREE_SPACE));
  }
  return findings;
}

function checkReplicas(at: string, field: Field, { redisWaitReplicas }: Config): readonly Finding[] {
  const connected = Number(field("connected_slaves"));
  const findings: Finding[] = [];
  if (redisWaitReplicas > connected) {
    findings.push(
      fault(
        `${at} has ${connected} replicas, and REDIS_WAIT_REPLICAS waits for ${redisWaitReplicas}: logins and logouts get 503`,
        "start the replicas, or lower REDIS_WAIT_REPLICAS",
      ),
    );
  }
  if (connected > 0 && field("min_slaves_good_slaves") === "") {
    findings.push(
      warning(
        `${at} takes writes even when it is cut off from its replicas: a failover then undoes logouts`,
        "CONFIG SET min-replicas-to-write 1, and in its configuration file",
      ),
    );
  }
  return findings;
}

function checkRole(at: string, field: Field, target: RedisTarget): readonly Finding[] {
  if (target.kind !== "cluster" && field("cluster_enabled") === "1") {
    return [fault(`${at} is part of a cluster`, "list several of its nodes in REDIS_URL, comma-separated")];
  }
  if (target.kind === "single" && field("role") === "slave") {
    return [fault(`${at} is a replica, which takes no writes`, "name its master in REDIS_URL, or use Sentinel")];
  }
  return [];
}

function checkClocks(nodes: readonly NodeFacts[]): readonly Finding[] {
  const known = nodes.flatMap(({ at, clock }) => (clock === undefined ? [] : [{ at, ...clock }]));
  const [first, ...others] = known;
  if (first === undefined) return [];
  const apart = others.find(
    ({ aheadMs, uncertaintyMs }) =>
      Math.abs(aheadMs - first.aheadMs) - uncertaintyMs - first.uncertaintyMs > MAX_NODE_SKEW_MS,
  );
  if (apart !== undefined) {
    return [
      fault(
        `the clocks of ${first.at} and ${apart.at} differ by ${seconds(Math.abs(apart.aheadMs - first.aheadMs))}`,
        "let both follow NTP",
      ),
    ];
  }
  const wrong = known.find(({ aheadMs, uncertaintyMs }) => Math.abs(aheadMs) - uncertaintyMs > MAX_OWN_SKEW_MS);
  if (wrong !== undefined) {
    const direction = wrong.aheadMs > 0 ? "ahead of" : "behind";
    return [
      warning(
        `the clock of ${wrong.at} is ${seconds(Math.abs(wrong.aheadMs))} ${direction} that of this machine: verifiers here may refuse fresh tokens`,
        "let both follow NTP",
      ),
    ];
  }
  return [ok("the clocks agree")];
}

const seconds = (ms: number) => `${(ms / 1000).toFixed(1)} s`;
