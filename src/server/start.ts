/** The composition root: this folder alone knows every room. */
import { join, relative, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { refreshCookie } from "../api/public/cookie.ts";
import type { Config } from "../config/config.ts";
import { createOverloadControl } from "../limits/overload.ts";
import { createRateLimits } from "../limits/rate-limits.ts";
import { createAudit } from "../observability/audit.ts";
import type { LogCounts, Logger } from "../observability/logger.ts";
import { createMetrics } from "../observability/metrics.ts";
import { outageLog } from "../observability/outage.ts";
import { overloadReport } from "../observability/overload.ts";
import { followRevocations } from "../session/feed.ts";
import { type SessionStore, StoreRefused } from "../session/ports.ts";
import { createAccessTokens } from "../tokens/access-token.ts";
import { ADMIN_TOKEN_FILE } from "../tokens/own-admin-token.ts";
import { createRandom, systemEntropy } from "../tokens/random.ts";
import { createRefreshTokens } from "../tokens/refresh-token.ts";
import { adminHandler } from "./admin-api.ts";
import { openListeners } from "./open-listeners.ts";
import { openStore } from "./open-store.ts";
import { publicHandler } from "./public-api.ts";
import { quickstart } from "./quickstart.ts";
import { hasOwnAdminToken, openAdminAccess, openKeyRing, prepareDataDir } from "./secrets.ts";
import { startError } from "./start-error.ts";
import { createStop, type Manner } from "./stop.ts";

/** How often a store that is late is asked again, ms. */
const STORE_RETRY = 200;

const KEY_RING_BROKEN = "the key ring is broken: the one before stays in force";
const KEY_RING_GONE =
  "the key ring's file is gone: not ready until it is restored. The ring stays in force in memory, and a restart " +
  "without the file would log everybody out";

export type Service = {
  readonly publicUrl: string;
  readonly adminUrl: string;
  /** Ends everything in order (stop.ts). Called again with "now", it does not wait any more for clients to go. */
  stop(manner: Manner): Promise<void>;
};

export type World = {
  readonly log: Logger;
  readonly logCounts?: LogCounts;
  /** Standard output. */
  readonly out: (text: string) => void;
};

/**
 * Starts the service; resolves once it is ready, having said so on `out`. While a Redis that is late
 * is waited for, the listeners are open and answer "unavailable".
 */
export async function start(config: Config, { log, logCounts, out }: World): Promise<Service> {
  await prepareDataDir(config);
  const ring = await openKeyRing(config);
  const access = await openAdminAccess(config);
  const metrics = createMetrics(logCounts);
  const listeners = await openListeners(config, log, metrics);
  const { public: publicListener, admin: adminListener } = listeners;
  const audit = createAudit(log, metrics);
  const issuer = config.issuer ?? `${publicListener.scheme}://127.0.0.1:${publicListener.port}`;
  if (config.redis !== undefined && config.issuer === undefined) {
    log.warn(
      { event: "issuer_default", issuer },
      "ISSUER is not set: instances on other ports will not accept each other's access tokens",
    );
  }
  if (config.accessTokenTtl < 5 * config.reuseInterval) {
    log.warn(
      { event: "token_life_short" },
      "ACCESS_TOKEN_TTL is less than 5 REUSE_INTERVAL: a thief who keeps asking may stay unseen (docs/rotation.md)",
    );
  }
  const entropy = systemEntropy();
  const { kind, store } = await openStore(config, log).catch(async (error: unknown) => {
    listeners.stopFollowing();
    await Promise.all([publicListener.close(0), adminListener.close(0)]);
    throw startError(error);
  });
  const feed = followRevocations({
    store,
    clock: Date.now,
    instance: entropy.text(12),
    onError: (err) =>
      log.error(
        { event: "feed_unreadable", err },
        "the revocation log cannot be read: the feed is silent until it can",
      ),
  });
  const stopWatching = ring.watch({
    changed: ({ signing, revokedKids }) => {
      log.info({ event: "key_ring_changed", signing: signing.kid, revoked: revokedKids }, "key_ring_changed");
      feed.beat();
    },
    refused: (fault) =>
      log.error({ event: "key_ring_refused", fault: fault.message }, fault.absent ? KEY_RING_GONE : KEY_RING_BROKEN),
    recovered: () => log.info({ event: "key_ring_recovered" }, "the key ring's file is in order again"),
  });
  const stopFollowingAdmins = access.watch({
    changed: (names) => {
      log.info({ event: "admin_tokens_changed", names }, "admin_tokens_changed");
      feed.beat(); // a watcher whose credential was withdrawn ends now
    },
    refused: (fault) =>
      log.error(
        { event: "admin_tokens_refused", fault: fault.message },
        "ADMIN_TOKENS_FILE is broken: what was in force stays",
      ),
  });
  const ready = async () => {
    if (ring.lost) throw new Error("the key ring's file is gone");
    await store.ping();
  };

  const audiences = config.audiences ?? [issuer];
  const draining = new AbortController();
  const stopping = new AbortController();
  const overload = createOverloadControl({
    ...config.overload,
    // Half of what a command may take: who is accepted then still gets a reply.
    maxStoreDelayMs: config.redisCommandTimeout / 2,
    onRefused: overloadReport(log, metrics),
  });
  metrics.watchWaiting(overload.waiting);
  const common = {
    store: overload.limit(store),
    accept: overload.accept,
    ready,
    refreshTokens: createRefreshTokens(ring),
    accessTokens: createAccessTokens({
      keys: ring,
      issuer,
      ttl: config.accessTokenTtl,
      entropy,
      clock: (sid) => store.now(sid),
    }),
    random: createRandom(entropy),
    audit,
    audiences: new Set(audiences),
    cookie: refreshCookie(config.cookie, Date.now),
    ...createRateLimits(config.rateLimits, () => Math.floor(entropy.fraction() * 2 ** 32)),
    jwks: () => JSON.stringify(ring.current.jwks),
    metrics,
    isDraining: () => draining.signal.aborted,
    stopping: stopping.signal,
    onUnavailable: outageLog(log),
    log,
  };
  publicListener.serve(publicHandler(config, common));
  adminListener.serve(
    adminHandler(config, {
      ...config,
      ...common,
      access,
      issuer,
      clock: Date.now,
      audience: audiences[0] ?? issuer,
      feed,
      revokedKeyIds: () => ring.current.revokedKids,
    }),
  );

  const stop = createStop({
    drainDelayMs: config.drainDelayMs,
    shutdownTimeoutMs: config.shutdownTimeout,
    listeners: [publicListener, adminListener],
    onDrain: () => draining.abort(),
    async onDrained() {
      stopping.abort();
      stopWatching();
      listeners.stopFollowing();
      stopFollowingAdmins();
      overload.close();
      await feed.close();
    },
    onClosed: () => store.close(),
  });
  await untilItAnswers(store, log).catch(async (error: unknown) => {
    await stop("now");
    throw startError(error);
  });
  out(`${JSON.stringify({ event: "ready", public: publicListener.url, admin: adminListener.url, store: kind })}\n`);
  if (kind === "embedded" && hasOwnAdminToken(config)) {
    const tokenFile = shortest(join(config.dataDir, ADMIN_TOKEN_FILE));
    out(quickstart(publicListener.url, adminListener.url, tokenFile, config.cookie.name));
  }

  return { publicUrl: publicListener.url, adminUrl: adminListener.url, stop };
}

/** A path as a person at this prompt would type it. */
function shortest(path: string): string {
  const near = relative(process.cwd(), path);
  return near.startsWith("..") ? resolve(path) : near;
}

/** @throws StoreRefused: waiting would not help */
async function untilItAnswers(store: SessionStore, log: Logger): Promise<void> {
  for (let attempt = 0; ; attempt++) {
    try {
      return await store.ping();
    } catch (err) {
      if (err instanceof StoreRefused) throw err;
      if (attempt === 0) log.warn({ event: "store_awaited", err }, "waiting for the store");
      await sleep(STORE_RETRY);
    }
  }
}
