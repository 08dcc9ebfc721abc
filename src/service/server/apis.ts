/** Creates both APIs over the same store, tokens, limits and audit. */

import { steadyClock } from "../../platform/clock/turns.ts";
import type { Handler } from "../../platform/listener/exchange.ts";
import { checkAtIntervals } from "../../platform/listener/pages.ts";
import { subnetOf } from "../../platform/net/subnet.ts";
import type { OverloadControl } from "../api/limits/overload.ts";
import { createRateLimits } from "../api/limits/rate-limit.ts";
import { refreshCookie } from "../api/public/cookie.ts";
import { cutLastSeen, wholeLastSeen } from "../api/public/last-seen.ts";
import type { Config } from "../config/config.ts";
import { isLoopback } from "../config/loopback.ts";
import type { Logger } from "../observability/logger.ts";
import type { Metrics } from "../observability/metrics.ts";
import { outageLog } from "../observability/reports.ts";
import type { Telemetry } from "../observability/telemetry/start-telemetry.ts";
import type { SignInRecords } from "../pages/console/sign-ins.ts";
import type { DocsSignInDeps } from "../pages/reference/sign-in.ts";
import { create } from "../session/admin/create.ts";
import { limitOf } from "../session/admin/limit.ts";
import { sessionOfLogin } from "../session/admin/session-of-login.ts";
import type { Audit } from "../session/audit.ts";
import type { RevocationFeed } from "../session/feed/feed.ts";
import type { SessionStore } from "../session/ports.ts";
import { systemClock } from "../session/time.ts";
import { createSubjectSignals } from "../signals/of-subject.ts";
import type { StreamPlace } from "../signals/streams/configuration.ts";
import type { PollerDeps } from "../signals/streams/poller.ts";
import { createAccessTokens } from "../tokens/access-token.ts";
import { createRandom, type Entropy } from "../tokens/random.ts";
import { createRefreshTokens } from "../tokens/refresh-token.ts";
import { adminHandler } from "./admin-api.ts";
import { mayOfferSignIn } from "./announce.ts";
import { createDeviceBinding, createDpop } from "./device-parts.ts";
import type { FollowedFiles } from "./follow-files.ts";
import { openMigration } from "./open-migration.ts";
import { openOperators, openProviderSignIn } from "./open-sign-in.ts";
import type { OpenedStore } from "./open-store.ts";
import { publicHandler } from "./public-api.ts";

type Deps = {
  readonly config: Config;
  readonly files: FollowedFiles;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly audit: Audit;
  readonly entropy: Entropy;
  readonly store: SessionStore;
  readonly overload: OverloadControl;
  readonly storeKind: OpenedStore["kind"];
  readonly telemetry: Telemetry | undefined;
  /** Undefined if SIGNALS is off. */
  readonly signals: PollerDeps | undefined;
  readonly consoleSignIns: SignInRecords;
  readonly feed: Pick<RevocationFeed, "watch" | "state">;
  readonly issuer: string;
};

type Apis = {
  readonly publicHandler: Handler;
  readonly adminHandler: Handler;
  /** The key for signing in on the reference page, if that is offered. */
  readonly docsKey: string | undefined;
  /** Makes `/readyz` respond 503 from now on. */
  drain(): void;
  /** Ends streams and overload control. */
  close(): void;
};

/** What sessions keep of the request that refreshes them, by the setting LAST_SEEN. */
const LAST_SEEN = { off: undefined, truncated: cutLastSeen, full: wholeLastSeen } as const;

export function createApis(deps: Deps): Apis {
  const { config, files, feed, issuer, overload } = deps;
  const { ring, access, policies, providerSignIn, operators } = files;
  const draining = new AbortController();
  const stopping = new AbortController();
  const docsKey = mayOfferSignIn(config) ? deps.entropy.text(24) : undefined;
  const [audience = issuer, ...others] = config.audiences ?? [];
  const streams = streamPlaceOf(deps);
  const common = { ...shared(deps), draining: draining.signal, stopping: stopping.signal };
  const { sessionIdleTtlMs, sessionAbsoluteTtlMs, actorSessionMaxMs, reuseIntervalMs } = config;
  const { maxSessionsPerSubject, oauthEndpoints } = config;
  const creation = {
    sessionIdleTtlMs,
    sessionAbsoluteTtlMs,
    actorSessionMaxMs,
    reuseIntervalMs,
    maxSessionsPerSubject,
    oauthEndpoints,
    audience,
    clock: systemClock,
    limitPolicies: () => policies.current.limits,
  };
  return {
    docsKey,
    publicHandler: publicHandler(config, {
      ...common,
      issuer,
      adminUrl: config.signalsUrl,
      tokenExchange: { access, policies: () => policies.current.tokenExchange },
      streams,
      audiences: new Set([audience, ...others]),
      lastSeen: LAST_SEEN[config.lastSeen],
      migration: openMigration(config, {
        ...common,
        ...creation,
        ring,
        issuer,
        entropy: deps.entropy,
      }),
      providerRoute:
        providerSignIn && openProviderSignIn(config, { ...common, ...creation, ring, issuer }, providerSignIn),
      docsSignIn:
        docsKey === undefined
          ? undefined
          : { key: docsKey, isLoopback, createSession: sessionsForVisitors(deps, common) },
    }),
    adminHandler: adminHandler(config, {
      ...common,
      ...creation,
      access,
      consoleSignIns: deps.consoleSignIns,
      operators: operators && openOperators(ring, deps.log, operators),
      signals: deps.signals,
      subjectSignals: deps.signals && createSubjectSignals({ ...deps.signals, clock: steadyClock }),
      streams,
      issuer,
      feed,
      ring,
      revokedKeyIds: () => ring.current.revokedKids,
    }),
    drain: () => draining.abort(),
    close() {
      stopping.abort();
      overload.close();
    },
  };
}

/** Undefined if there are no streams of the Shared Signals Framework (SSF). */
function streamPlaceOf({ config, signals, issuer, files }: Deps): StreamPlace | undefined {
  return signals === undefined || config.signalsUrl === undefined
    ? undefined
    : {
        issuer,
        url: config.signalsUrl,
        verificationIntervalMs: config.signalsVerificationIntervalMs,
        forInterop: files.eventKeys !== undefined,
      };
}

function shared(deps: Deps) {
  const { config, log, metrics, audit, entropy, store, storeKind, overload, issuer, telemetry } = deps;
  const { ring, eventKeys } = deps.files;
  const publishedKeys = () => [...ring.current.jwks.keys, ...(eventKeys?.current.jwks ?? [])];
  return {
    log,
    metrics,
    audit,
    telemetry,
    store: telemetry?.traceStore(store, storeKind) ?? store,
    accept: overload.accept,
    ready: checkAtIntervals(async () => {
      if (ring.isLost()) throw new Error("the key ring's file is gone");
      await store.ping();
    }),
    refreshTokens: createRefreshTokens(ring),
    accessTokens: createAccessTokens({ keys: ring, issuer, ttlMs: config.accessTokenTtlMs, entropy, time: store }),
    random: createRandom(entropy),
    cookie: refreshCookie(config.cookie, Date.now),
    device: createDeviceBinding(config, ring, entropy, (sid) => store.now(sid)),
    dpop: createDpop(config, ring, entropy, issuer),
    ...createRateLimits(config.rateLimits, subnetOf),
    jwks: () => JSON.stringify({ keys: publishedKeys() }),
    keyAlgorithms: () => publishedKeys().map(({ alg }) => alg),
    onUnavailable: outageLog(log),
  };
}

/** Returns a function that creates sessions for visitors who sign in on the reference page. */
function sessionsForVisitors(
  { config, issuer, files }: Deps,
  common: ReturnType<typeof shared>,
): DocsSignInDeps["createSession"] {
  const { maxSessionsPerSubject } = config;
  return async ({ subject, userAgent, address }) => {
    const client = { userAgent, ipAddress: address() ?? "", displayName: "API reference" };
    const wanted = sessionOfLogin(config, { subject, clientId: issuer, audience: issuer, claims: "{}", client });
    const limit = limitOf(files.policies.current.limits, wanted);
    const requester = { address, adminName: "docs" };
    const created = await create({ ...common, maxSessionsPerSubject }, wanted, requester, { limit });
    if (!created.ok) return undefined;
    const { accessToken, refreshToken, maxAge, session } = created;
    return {
      accessToken: accessToken.token,
      cookies: [...common.cookie.set(refreshToken, maxAge, session.sid, accessToken)],
    };
  };
}
