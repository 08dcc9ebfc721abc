/** Creates both APIs over the same store, tokens, limits and audit. */

import { steadyClock } from "../../platform/clock/turns.ts";
import type { Handler } from "../../platform/listener/handler.ts";
import { checkAtIntervals, readyz } from "../../platform/listener/pages.ts";
import { subnetOf } from "../../platform/net/subnet.ts";
import type { OverloadControl } from "../api/limits/overload.ts";
import { createRateLimits } from "../api/limits/rate-limit.ts";
import { createRefreshCookie } from "../api/public/cookie.ts";
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
import type { ApiDeps } from "./api-handler.ts";
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
  /** Returns whether `/readyz` responds 200. */
  isReady(): Promise<boolean>;
  /** Begins what runs without a request: polling for the security events of providers. */
  start(): void;
  /** Makes `/readyz` respond 503 from now on. */
  drain(): void;
  /** Ends streams and overload control. */
  close(): void;
};

/** What sessions keep of the request that refreshes them, by the setting LAST_SEEN. */
const LAST_SEEN = { off: undefined, truncated: cutLastSeen, full: wholeLastSeen } as const;

export function createApis(deps: Deps): Apis {
  const { config, files, log, metrics, entropy, feed, issuer, overload, signals } = deps;
  const { ring, access, policies, providerSignIn, operators } = files;
  const draining = new AbortController();
  const stopping = new AbortController();
  const docsKey = mayOfferSignIn(config) ? entropy.text(24) : undefined;
  const [audience = issuer, ...others] = config.audiences ?? [];
  const streams = streamPlaceOf(deps);
  const apiDeps = apiDepsOf(deps, draining.signal, stopping.signal);
  const sessions = sessionParts(deps);
  const creation = creationSettings(deps, audience);
  const { accept, onUnavailable } = apiDeps;
  const signInDeps = { ...sessions, ...creation, ring, issuer, log, accept, onUnavailable, stopping: stopping.signal };
  const signIn = providerSignIn && openProviderSignIn(config, signInDeps, providerSignIn);
  return {
    docsKey,
    publicHandler: publicHandler(config, apiDeps, {
      ...sessions,
      issuer,
      adminUrl: config.signalsUrl,
      keyAlgorithms: () => publishedKeys(files).map(({ alg }) => alg),
      tokenExchange: { access, policies: () => policies.current.tokenExchange },
      streams,
      audiences: new Set([audience, ...others]),
      lastSeen: LAST_SEEN[config.lastSeen],
      migration: openMigration(config, { ...sessions, ...creation, ring, issuer, entropy, log, metrics }),
      providerRoute: signIn?.route,
      docsSignIn:
        docsKey === undefined
          ? undefined
          : { key: docsKey, isLoopback, createSession: sessionsForVisitors(deps, sessions) },
    }),
    adminHandler: adminHandler(config, apiDeps, {
      ...sessions,
      ...creation,
      access,
      consoleSignIns: deps.consoleSignIns,
      operators: operators && openOperators(ring, log, operators),
      signals,
      subjectSignals: signals && createSubjectSignals({ ...signals, clock: steadyClock }),
      streams,
      issuer,
      feed,
      ring,
      revokedKeyIds: () => ring.current.revokedKids,
    }),
    isReady: async () => (await readyz(apiDeps.ready, () => draining.signal.aborted)).status === 200,
    start: () => signIn?.pollEvents(),
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

/** Returns what the layers around the RPCs of both APIs need. */
function apiDepsOf(deps: Deps, draining: AbortSignal, stopping: AbortSignal): ApiDeps {
  const { log, metrics, telemetry, files, store, overload } = deps;
  return {
    log,
    metrics,
    telemetry,
    draining,
    stopping,
    accept: overload.accept,
    ready: checkAtIntervals(async () => {
      if (files.ring.isLost()) throw new Error("the key ring's file is gone");
      await store.ping();
    }),
    jwks: () => JSON.stringify({ keys: publishedKeys(files) }),
    onUnavailable: outageLog(log),
  };
}

const publishedKeys = ({ ring, eventKeys }: FollowedFiles) => [
  ...ring.current.jwks.keys,
  ...(eventKeys?.current.jwks ?? []),
];

/** Returns what RPCs act on sessions with. */
function sessionParts({ config, files, audit, entropy, store, storeKind, issuer, telemetry }: Deps) {
  const { ring } = files;
  return {
    store: telemetry?.traceStore(store, storeKind) ?? store,
    audit,
    refreshTokens: createRefreshTokens(ring),
    accessTokens: createAccessTokens({ keys: ring, issuer, ttlMs: config.accessTokenTtlMs, entropy, time: store }),
    random: createRandom(entropy),
    cookie: createRefreshCookie(config.cookie, Date.now),
    device: createDeviceBinding(config, ring, entropy, (sid) => store.now(sid)),
    dpop: createDpop(config, ring, entropy, issuer),
    ...createRateLimits(config.rateLimits, subnetOf),
  };
}

/** Returns the defaults and limits of new sessions. @param audience that of a session whose request names none */
function creationSettings({ config, files }: Deps, audience: string) {
  return {
    sessionIdleTtlMs: config.sessionIdleTtlMs,
    sessionAbsoluteTtlMs: config.sessionAbsoluteTtlMs,
    actorSessionMaxMs: config.actorSessionMaxMs,
    reuseIntervalMs: config.reuseIntervalMs,
    maxSessionsPerSubject: config.maxSessionsPerSubject,
    oauthEndpoints: config.oauthEndpoints,
    audience,
    clock: systemClock,
    limitPolicies: () => files.policies.current.limits,
  };
}

/** Returns a function that creates sessions for visitors who sign in on the reference page. */
function sessionsForVisitors(
  { config, issuer, files }: Deps,
  sessions: ReturnType<typeof sessionParts>,
): DocsSignInDeps["createSession"] {
  const { maxSessionsPerSubject } = config;
  return async ({ subject, userAgent, address }) => {
    const client = { userAgent, ipAddress: address() ?? "", displayName: "API reference" };
    const wanted = sessionOfLogin(config, { subject, clientId: issuer, audience: issuer, claims: "{}", client });
    const limit = limitOf(files.policies.current.limits, wanted);
    const requester = { address, adminName: "docs" };
    const created = await create({ ...sessions, maxSessionsPerSubject }, wanted, requester, { limit });
    if (!created.ok) return undefined;
    return { accessToken: created.accessToken.token, cookies: [...sessions.cookie.set(created)] };
  };
}
