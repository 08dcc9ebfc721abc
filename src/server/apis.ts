/** Both APIs over one domain: the same store, tokens, limits and audit. */
import { refreshCookie } from "../api/public/cookie.ts";
import type { Config } from "../config/config.ts";
import type { OverloadControl } from "../limits/overload.ts";
import { createRateLimits } from "../limits/rate-limits.ts";
import type { Handler } from "../listener/exchange.ts";
import type { Logger } from "../observability/logger.ts";
import type { Metrics } from "../observability/metrics.ts";
import { outageLog } from "../observability/outage.ts";
import type { AdminAccess } from "../session/admin-access.ts";
import type { Audit } from "../session/audit.ts";
import type { RevocationFeed } from "../session/feed.ts";
import type { SessionStore } from "../session/ports.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import { createAccessTokens } from "../tokens/access-token.ts";
import type { KeyRing } from "../tokens/key-ring.ts";
import { createRandom, type Entropy } from "../tokens/random.ts";
import { createRefreshTokens } from "../tokens/refresh-token.ts";
import { adminHandler } from "./admin-api.ts";
import { createDeviceBinding } from "./device-binding.ts";
import { mayOfferSignIn } from "./docs-sign-in.ts";
import type { OpenedStore } from "./open-store.ts";
import { publicHandler } from "./public-api.ts";

type Deps = {
  readonly config: Config;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly audit: Audit;
  readonly entropy: Entropy;
  readonly ring: KeyRing;
  readonly access: AdminAccess;
  /** With a bounded number of commands waiting for it. */
  readonly store: SessionStore;
  readonly overload: OverloadControl;
  readonly storeKind: OpenedStore["kind"];
  readonly telemetry: Telemetry | undefined;
  readonly feed: Pick<RevocationFeed, "watch" | "state">;
  /** `iss` of the access tokens. */
  readonly issuer: string;
};

export type Apis = {
  readonly publicHandler: Handler;
  readonly adminHandler: Handler;
  /** What signing in on the reference page needs, where it is offered. */
  readonly docsKey: string | undefined;
  /** From now on `/readyz` responds with 503. */
  drain(): void;
  /** Ends streams and overload control. */
  close(): void;
};

export function createApis(deps: Deps): Apis {
  const { config, ring, access, feed, issuer, overload } = deps;
  const draining = new AbortController();
  const stopping = new AbortController();
  const docsKey = mayOfferSignIn(config) ? deps.entropy.text(24) : undefined;
  const audiences = config.audiences ?? [issuer];
  const common = {
    ...commonDeps(deps),
    audiences: new Set(audiences),
    draining: draining.signal,
    stopping: stopping.signal,
  };
  return {
    docsKey,
    publicHandler: publicHandler(config, {
      ...common,
      docsSignIn: docsKey === undefined ? undefined : { ...config, ...common, audience: issuer, key: docsKey },
    }),
    adminHandler: adminHandler(config, {
      ...config,
      ...common,
      access,
      issuer,
      feed,
      ring,
      clock: Date.now,
      audience: audiences[0] ?? issuer,
      revokedKeyIds: () => ring.current.revokedKids,
    }),
    drain: () => draining.abort(),
    close() {
      stopping.abort();
      overload.close();
    },
  };
}

function commonDeps(deps: Deps) {
  const { config, log, metrics, audit, entropy, ring, store, storeKind, overload, issuer, telemetry } = deps;
  const clock: SessionStore["now"] = (sid) => store.now(sid);
  return {
    log,
    metrics,
    audit,
    telemetry,
    store: telemetry?.traceStore(store, storeKind) ?? store,
    accept: overload.accept,
    async ready() {
      if (ring.lost) throw new Error("the key ring's file is gone");
      await store.ping();
    },
    refreshTokens: createRefreshTokens(ring),
    accessTokens: createAccessTokens({
      keys: ring,
      issuer,
      ttlMs: config.accessTokenTtlMs,
      entropy,
      clock,
    }),
    random: createRandom(entropy),
    cookie: refreshCookie(config.cookie, Date.now),
    device: createDeviceBinding(config, ring, entropy, clock),
    ...createRateLimits(config.rateLimits),
    jwks: () => JSON.stringify(ring.current.jwks),
    onUnavailable: outageLog(log),
  };
}
