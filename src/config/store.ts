import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import type { AddFault, Read } from "./reader.ts";
import { parseRedisUrl, type RedisTarget } from "./redis-url.ts";
import { readSecret } from "./secrets.ts";
import { duration, integer, invalid, type Parsed, SECOND_MS, text, valid } from "./values.ts";

function certificates(path: string): Parsed<string> {
  try {
    const pem = readFileSync(path, "utf8");
    new X509Certificate(pem);
    return valid(pem);
  } catch {
    return invalid("names a file that cannot be read, or is no PEM certificate");
  }
}

function readRedis(read: Read, addFault: AddFault): RedisTarget | undefined {
  const target = readSecret(read, addFault, "REDIS_URL", parseRedisUrl);
  const ca = read("REDIS_TLS_CA_FILE", certificates, undefined);
  const sentinelUsername = read("REDIS_SENTINEL_USERNAME", text(255), undefined);
  const sentinelPassword = readSecret(read, addFault, "REDIS_SENTINEL_PASSWORD", text(1024));
  if (ca !== undefined && target?.tls !== true) addFault("REDIS_TLS_CA_FILE needs a REDIS_URL with rediss://");
  if (sentinelPassword !== undefined && target?.kind !== "sentinel") {
    addFault("REDIS_SENTINEL_PASSWORD needs a REDIS_URL with redis+sentinel:// or rediss+sentinel://");
  }
  if (sentinelUsername !== undefined && sentinelPassword === undefined) {
    addFault("REDIS_SENTINEL_USERNAME needs REDIS_SENTINEL_PASSWORD");
  }
  return target === undefined ? undefined : { ...target, ca, sentinelUsername, sentinelPassword };
}

/** Parses a number of processes, or `auto`: one for each core that the process may use. */
function workers(text: string): Parsed<number> {
  return text.toLowerCase() === "auto"
    ? valid(Math.min(MAX_WORKERS, availableParallelism()))
    : integer(1, MAX_WORKERS)(text);
}

/** No machine has so many cores. The limit keeps a mistyped number from starting thousands of processes. */
const MAX_WORKERS = 256;

export function readStore(read: Read, addFault: AddFault) {
  const store = {
    redis: readRedis(read, addFault),
    redisWaitReplicas: read("REDIS_WAIT_REPLICAS", integer(0, 16), 0),
    redisCommandTimeoutMs: read("REDIS_COMMAND_TIMEOUT", duration(10, 10 * SECOND_MS), 500),
    workers: read("WORKERS", workers, 1),
    dataDir: read("DATA_DIR", text(4096), "./data"),
  };
  if (store.redis === undefined && store.redisWaitReplicas > 0) addFault("REDIS_WAIT_REPLICAS needs REDIS_URL");
  if (store.redis === undefined && store.workers > 1) {
    addFault("WORKERS needs REDIS_URL: processes on the embedded store would wait for each other's writes");
  }
  return store;
}
