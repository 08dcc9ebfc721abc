/** The composition root: this folder alone knows every room. */

import { steadyClock } from "../clock/steady.ts";
import { turns } from "../clock/turns.ts";
import type { Config } from "../config/config.ts";
import { createAudit } from "../observability/audit.ts";
import type { LogCounts, Logger } from "../observability/logger.ts";
import { createMetrics } from "../observability/metrics.ts";
import { createRevocationFeed, type RevocationFeed } from "../session/feed.ts";
import type { SessionStore } from "../session/ports.ts";
import { systemEntropy } from "../tokens/random.ts";
import { reportReady } from "./announce.ts";
import { createApis } from "./apis.ts";
import { openEventRecorder } from "./event-recorder.ts";
import { exposeState } from "./expose-state.ts";
import { followSecrets } from "./follow-secrets.ts";
import { openListeners } from "./open-listeners.ts";
import { openOverloadControl } from "./open-overload-control.ts";
import { loadRedisStore, openStore } from "./open-store.ts";
import { openTelemetry } from "./open-telemetry.ts";
import { rehearse } from "./rehearsal.ts";
import { openAdminAccess, openKeyRing, prepareDataDir } from "./secrets.ts";
import { startError } from "./start-error.ts";
import { createStop, type StopMode } from "./stop.ts";
import { waitForStore } from "./wait-for-store.ts";

/** Below it, a stall that the store's guards tolerate (500 ms) is longer than a quarter of the reuse interval. */
const MIN_REUSE_INTERVAL_MS = 2_000;
/** An attacker that keeps polling is detected if 7 R pass between refreshes; jitter takes up to a fifth of the token life. */
const MIN_TTL_IN_REUSE_INTERVALS = 9;

export type Service = {
  readonly publicUrl: string;
  readonly adminUrl: string;
  /** Ends everything in order (stop.ts). Called again with "now", it stops waiting for clients to leave. */
  stop(mode: StopMode): Promise<void>;
};

export type ProcessDeps = {
  readonly log: Logger;
  readonly logCounts?: LogCounts;
  /** Writes to standard output. */
  readonly out: (text: string) => void;
  /** Returns the memory that only the start needed. */
  readonly releaseMemory?: () => void;
};

/**
 * Starts the service; resolves once it is ready and has reported so on `out`. While the store is awaited, the listeners are
 * open and respond with E503_UNAVAILABLE.
 *
 * @throws StartError
 */
export async function start(config: Config, { log, logCounts, out, releaseMemory }: ProcessDeps): Promise<Service> {
  await prepareDataDir(config);
  const ring = await openKeyRing(config);
  const access = await openAdminAccess(config);
  const entropy = systemEntropy();
  await warmUp({ config, ring, entropy, log }, releaseMemory);
  const metrics = createMetrics(logCounts);
  const telemetry = await openTelemetry(config, metrics, log);
  const listeners = await openListeners(config, log, metrics);
  const { public: publicListener, admin: adminListener } = listeners;
  const issuer = config.issuer ?? `${publicListener.scheme}://127.0.0.1:${publicListener.port}`;
  reportSettings(config, issuer, log);
  const opened = await openStore(config, log).catch(async (error: unknown) => {
    listeners.stopFollowing();
    await Promise.all([publicListener.close(0), adminListener.close(0)]);
    throw startError(error);
  });
  const overload = openOverloadControl(config, log, metrics);
  const store = overload.limit(opened.store);
  const feed = openFeed(store, entropy.text(12), log);
  const stopFollowing = followSecrets(ring, access, feed, log);
  const events = openEventRecorder(config, opened.store, log, createAudit(log, metrics), entropy);
  const apis = createApis({
    config,
    log,
    metrics,
    audit: events.audit,
    entropy,
    ring,
    access,
    store,
    overload,
    storeKind: opened.kind,
    feed,
    issuer,
    telemetry,
  });
  exposeState(metrics, { listeners, feed, ring, opened });
  publicListener.serve(apis.publicHandler);
  adminListener.serve(apis.adminHandler);

  const stop = createStop({
    drainDelayMs: config.drainDelayMs,
    shutdownTimeoutMs: config.shutdownTimeoutMs,
    listeners: [publicListener, adminListener],
    onDrain: apis.drain,
    async onDrained() {
      apis.close();
      stopFollowing();
      listeners.stopFollowing();
      await feed.close();
    },
    async onClosed() {
      await events.close();
      await store.close();
      await telemetry?.shutdown();
    },
  });
  await waitForStore(store, log).catch(async (error: unknown) => {
    await stop("now");
    throw startError(error);
  });
  const urls = { publicUrl: publicListener.url, adminUrl: adminListener.url };
  reportReady(out, config, { ...urls, store: opened.kind, docsKey: apis.docsKey });
  return { ...urls, stop };
}

/** @param instance a name that no other process has */
function openFeed(store: SessionStore, instance: string, log: Logger): RevocationFeed {
  const onError = (err: unknown) =>
    log.error(
      { event: "feed_unreadable", err },
      "the revocation log cannot be read: the feed is silent until it can be",
    );
  return createRevocationFeed({ store, clock: steadyClock, ranMs: () => turns.ranMs(), instance, onError });
}

/** Loads and compiles what requests need. It holds up the event loop, so it comes before anything measures or serves. */
async function warmUp(
  deps: Parameters<typeof rehearse>[0],
  releaseMemory: ProcessDeps["releaseMemory"],
): Promise<void> {
  if (deps.config.redis !== undefined) await loadRedisStore();
  await rehearse(deps);
  releaseMemory?.();
}

/** Warns of settings that are valid and may not be what is meant. */
function reportSettings(config: Config, issuer: string, log: Logger): void {
  if (config.redis !== undefined && config.issuer === undefined) {
    log.warn(
      { event: "issuer_default", issuer },
      "ISSUER is not set: instances on other ports will not accept each other's access tokens",
    );
  }
  if (config.reuseIntervalMs > 0 && config.reuseIntervalMs < MIN_REUSE_INTERVAL_MS) {
    log.warn(
      { event: "reuse_interval_short" },
      "REUSE_INTERVAL is less than 2s: a stall of the service or the store may log out a browser (docs/rotation.md)",
    );
  }
  if (config.accessTokenTtlMs < MIN_TTL_IN_REUSE_INTERVALS * config.reuseIntervalMs) {
    log.warn(
      { event: "token_life_short" },
      "ACCESS_TOKEN_TTL is less than 9 REUSE_INTERVAL: an attacker that keeps polling may stay undetected (docs/rotation.md)",
    );
  }
}
