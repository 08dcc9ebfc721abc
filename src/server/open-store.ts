/** Which store: Redis when there is a REDIS_URL, else the embedded one. */
import { join } from "node:path";
import type { Config } from "../config/config.ts";
import type { Logger } from "../observability/logger.ts";
import type { SessionStore } from "../session/ports.ts";
import { createEmbeddedStore } from "../store/embedded/store.ts";

/** How long verifiers' clocks and responses in flight may outlast the last access token of a session, ms. */
const MARKER_SLACK = 60_000;

export type OpenedStore = { readonly kind: "embedded" | "redis"; readonly store: SessionStore };

/** The embedded store's file. */
export const embeddedFile = (config: Pick<Config, "dataDir">) => join(config.dataDir, "sessions.db");

/** Loaded only where it is used: a start on the embedded store stays quick. */
export const loadRedisStore = () => import("../store/redis/store.ts");

export async function openStore(config: Config, log: Logger): Promise<OpenedStore> {
  const { reuseIntervalMs } = config;
  const markerLifeMs = config.accessTokenTtlMs + MARKER_SLACK;
  if (config.redis === undefined) {
    const path = embeddedFile(config);
    return { kind: "embedded", store: createEmbeddedStore({ path, clock: Date.now, reuseIntervalMs, markerLifeMs }) };
  }
  const { createRedisStore } = await loadRedisStore();
  const store = await createRedisStore({
    target: config.redis,
    reuseIntervalMs,
    markerLifeMs,
    waitReplicas: config.redisWaitReplicas,
    commandTimeoutMs: config.redisCommandTimeoutMs,
    log: (level, message) => log[level]({ event: "redis" }, message),
  });
  return { kind: "redis", store };
}
