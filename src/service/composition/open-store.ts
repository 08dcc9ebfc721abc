import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { createOverloadControl, type OverloadControl } from "../api/limits/overload.ts";
import type { Config } from "../config/config.ts";
import { DATA_FILES } from "../config/data-dir.ts";
import type { Logger } from "../observability/logger.ts";
import type { Metrics } from "../observability/metrics.ts";
import { overloadReport } from "../observability/reports.ts";
import { type SessionStore, StoreRefused } from "../session/ports.ts";
import { systemClock } from "../session/time.ts";
import type { StoreWithSignals } from "../signals/ports.ts";
import type { KeyRing } from "../tokens/key-ring.ts";

/**
 * How long an ended session is remembered after its last access token has expired, in ms: clocks of verifiers may be slow, and a
 * response with an access token may have been on its way.
 */
const MARKER_SLACK_MS = 60_000;

export type OpenedStore = { readonly kind: "embedded" | "redis"; readonly store: StoreWithSignals };

export const embeddedFile = (config: Pick<Config, "dataDir">) => join(config.dataDir, DATA_FILES.store);

const loadEmbeddedStore = () => import("../store/embedded/store.ts");
const loadRedisStore = () => import("../store/redis/store.ts");

/** Loads the modules of the store that is used. Those of the other one would take time and memory. */
export async function loadStore({ redis }: Config): Promise<void> {
  await (redis === undefined ? loadEmbeddedStore() : loadRedisStore());
}

export async function openStore(config: Config, log: Logger, ring: Pick<KeyRing, "current">): Promise<OpenedStore> {
  const { reuseIntervalMs, signalsRetentionMs } = config;
  const markerLifeMs = config.accessTokenTtlMs + MARKER_SLACK_MS;
  if (config.redis === undefined) {
    const path = embeddedFile(config);
    const { createEmbeddedStore } = await loadEmbeddedStore();
    return {
      kind: "embedded",
      store: createEmbeddedStore({ path, clock: systemClock, reuseIntervalMs, markerLifeMs, signalsRetentionMs }),
    };
  }
  const { createRedisStore } = await loadRedisStore();
  const store = await createRedisStore({
    target: config.redis,
    reuseIntervalMs,
    markerLifeMs,
    signalsRetentionMs,
    waitReplicas: config.redisWaitReplicas,
    commandTimeoutMs: config.redisCommandTimeoutMs,
    owner: () => ({ issuer: config.issuer, keyIds: ring.current.states.map(({ kid }) => kid) }),
    log: (level, message) => log[level]({ event: "redis" }, message),
  });
  return { kind: "redis", store };
}

/** How often a store that is not available yet is tried again, in ms. */
const STORE_RETRY_MS = 200;

/** Resolves when the store is available. @throws StoreRefused if waiting would not help */
export async function waitForStore(store: Pick<SessionStore, "ping">, log: Logger): Promise<void> {
  for (let attempt = 0; ; attempt++) {
    try {
      return await store.ping();
    } catch (err) {
      if (err instanceof StoreRefused) throw err;
      if (attempt === 0) log.warn({ event: "store_awaited", err }, "waiting for the store");
      await sleep(STORE_RETRY_MS);
    }
  }
}

export function openOverloadControl(config: Config, log: Logger, metrics: Metrics): OverloadControl {
  const overload = createOverloadControl({
    ...config.overload,
    reuseIntervalMs: config.reuseIntervalMs,
    // A call that is accepted just below this limit still gets its response within the command timeout.
    maxStoreDelayMs: config.redisCommandTimeoutMs / 2,
    onRefused: overloadReport(log, metrics),
    onReply: metrics.stored,
  });
  metrics.watchWaiting(overload.waiting);
  return overload;
}
