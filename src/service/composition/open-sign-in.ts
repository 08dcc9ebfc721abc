/** Composes sign-in by OpenID Connect providers. Its modules are loaded only if a provider is configured. */
import type { JsonObject } from "@bufbuild/protobuf";
import type { Request, Route } from "../../platform/listener/exchange.ts";
import { NodeRequestSource } from "../../platform/listener/request-source.ts";
import { crossSiteFault } from "../../platform/net/cross-site.ts";
import { matchOrigins } from "../../platform/net/origins.ts";
import { proxyTrust } from "../../platform/net/proxy-trust.ts";
import { requireAccessCookie } from "../api/admin/access-cookie.ts";
import { claimsOf } from "../api/messages.ts";
import type { RefreshCookie } from "../api/public/cookie.ts";
import {
  cookiesAfterLogout,
  cookiesElsewhere,
  type LogoutDeps,
  oldCookiesAfterLogout,
} from "../api/public/removed-cookies.ts";
import type { Config } from "../config/config.ts";
import { type ConsoleProviderFile, loadConsoleProvider } from "../config/console-provider.ts";
import { loadProviders, type ProvidersFile } from "../config/providers.ts";
import { withoutFile } from "../config/settings-file.ts";
import type { Logger } from "../observability/logger.ts";
import { elevate } from "../session/admin/admin.ts";
import { create } from "../session/admin/create.ts";
import { limitOf } from "../session/admin/limit.ts";
import { mayContinue, sessionOfLogin } from "../session/admin/session-of-login.ts";
import { type FailureDeps, takeFailure } from "../session/attempts.ts";
import { type Requester, UNKNOWN_REQUESTER } from "../session/audit.ts";
import { AUTHENTICATION_CLAIMS, RESERVED_CLAIMS } from "../session/claims.ts";
import { logoutByCookie } from "../session/endings/logout.ts";
import { endUpstream } from "../session/endings/upstream.ts";
import { ServiceError } from "../session/errors.ts";
import { type Authentication, parseSessionId } from "../session/model.ts";
import { type AccessTokens, type RefreshTokens, type SessionStore, StoreUnavailable } from "../session/ports.ts";
import { authenticateCookie, newestFirst } from "../session/rotation/presented-cookie.ts";
import { wallMs } from "../session/time.ts";
import type { SessionsOfBrowsers, SignedIn } from "../sign-in/sessions.ts";
import type { User } from "../sign-in/user.ts";
import type { KeyRing } from "../tokens/key-ring.ts";
import { createSecretSeal } from "../tokens/sealed-secret.ts";
import { orStartError } from "./secrets.ts";

type SignInModule = typeof import("../sign-in/sign-in.ts");

export type LoadedProviderSignIn = SignInModule & { readonly providers: ProvidersFile };

/** Loads the modules of sign-in, and its providers; undefined if none is configured. @throws StartError */
export async function loadProviderSignIn(config: Config): Promise<LoadedProviderSignIn | undefined> {
  const { signInProvidersFile: path, signInProvider: provider } = config;
  if (path === undefined && provider === undefined) return undefined;
  const providers =
    path === undefined
      ? withoutFile(provider === undefined ? [] : [provider])
      : await loadProviders(path, [...RESERVED_CLAIMS, ...AUTHENTICATION_CLAIMS]).catch(
          orStartError("SIGN_IN_PROVIDERS_FILE"),
        );
  return { ...(await import("../sign-in/sign-in.ts")), providers };
}

type OperatorsModule = typeof import("../sign-in/operators.ts");

export type LoadedOperators = OperatorsModule & { readonly provider: ConsoleProviderFile };

/** Loads the modules by which operators sign in to the console, and their provider; undefined if none is configured. @throws StartError */
export async function loadOperators({ consoleProviderFile: path }: Config): Promise<LoadedOperators | undefined> {
  if (path === undefined) return undefined;
  const provider = await loadConsoleProvider(path).catch(orStartError("CONSOLE_PROVIDER_FILE"));
  return { ...(await import("../sign-in/operators.ts")), provider };
}

export function openOperators(ring: KeyRing, log: Logger, { createOperators, provider }: LoadedOperators) {
  const seal = createSecretSeal(ring, "console-sign-in");
  return createOperators({ provider: () => provider.current, seal, clock: Date.now, log });
}

type Deps = Parameters<typeof create>[0] &
  Parameters<typeof elevate>[0] &
  FailureDeps & {
    readonly store: SessionStore;
    readonly refreshTokens: RefreshTokens;
    readonly accessTokens: AccessTokens;
    readonly cookie: RefreshCookie;
    readonly device: LogoutDeps["device"];
    readonly ring: KeyRing;
    readonly issuer: string;
    readonly audience: string;
    readonly limitPolicies: () => Parameters<typeof limitOf>[0];
    readonly accept: () => boolean;
    readonly stopping: AbortSignal;
    readonly log: Logger;
    readonly onUnavailable: (error: Error) => void;
  };

export function openProviderSignIn(
  config: Config,
  deps: Deps,
  { createSignIn, providers }: LoadedProviderSignIn,
): Route {
  const { allowedOrigins, allowSameSite, signInOrigin, signInStyle } = config;
  const isAllowed = matchOrigins(allowedOrigins);
  const trust = proxyTrust(config.trustProxy);
  const rules = { isAllowed, allowSameSite, allowCrossSite: false };
  return createSignIn({
    log: deps.log,
    accept: deps.accept,
    stopping: deps.stopping,
    origin: signInOrigin ?? new URL(deps.issuer).origin,
    providers: () => providers.current,
    sessions: sessionsOfBrowsers(config, deps, trust),
    seal: createSecretSeal(deps.ring, "sign-in"),
    isAllowed,
    isForeign(request) {
      const source = new NodeRequestSource(request, trust);
      const { "sec-fetch-site": site = null, origin = null } = request.headers;
      return (
        crossSiteFault({ site: site && String(site), origin }, (one) => one === source.origin(), rules) !== undefined
      );
    },
    takeFailure: (request) => takeFailure(deps, requesterOf(request, trust)),
    noteUnauthenticated: (request) => new NodeRequestSource(request, trust).noteUnauthenticated(),
    onError(error) {
      if (error instanceof StoreUnavailable) deps.onUnavailable(error);
      else deps.log.error({ event: "bug", err: error }, "bug");
    },
    style: signInStyle,
    clock: Date.now,
  });
}

type Trust = ReturnType<typeof proxyTrust>;

function sessionsOfBrowsers(config: Config, deps: Deps, trust: Trust): SessionsOfBrowsers {
  const { cookie, refreshTokens, store } = deps;
  const presented = (request: Request) =>
    authenticateCookie(refreshTokens, cookie.read(request.headers.cookie ?? null));
  const sentBy = (request: Request) => ({
    header: request.headers.cookie ?? null,
    origin: new NodeRequestSource(request, trust).origin(),
  });
  const currentOf = async (request: Request) => {
    const found = presented(request);
    const ordered = found.ok ? await newestFirst(store, found.tokens) : found;
    return ordered.ok ? ordered.tokens[0].sid : undefined;
  };

  return {
    current: currentOf,

    async create(user, request): Promise<SignedIn> {
      const wanted = wantedSession(config, deps, user, new NodeRequestSource(request, trust));
      if (wanted === undefined) return { ok: false, problem: "refused" };
      const [limit, replaces] = [limitOf(deps.limitPolicies(), wanted), await currentOf(request)];
      const created = await create(deps, wanted, requesterOf(request, trust), { replaces, limit });
      if (!created.ok) {
        return { ok: false, problem: created.reason === "rate_limited" ? "too_many" : "too_many_sessions" };
      }
      return { ok: true, cookies: [...cookiesElsewhere(deps, sentBy(request)), ...cookie.set(created)] };
    },

    async elevate(text, user, request) {
      const sid = parseSessionId(text);
      // Another user may have signed in here, or the session has ended.
      if (sid === undefined || sid !== (await currentOf(request))) return false;
      const found = await store.find(sid);
      if (!found.ok || !mayContinue(found.session, user, store.shiftMs({ sid }))) return false;
      // The provider need not report the time, and the user has just come from there.
      const now = Math.floor(Date.now() / 1000);
      const authentication = authenticationOf({ ...user, authTimeSeconds: user.authTimeSeconds ?? now });
      const elevated = await elevate(deps, sid, authentication, true, requesterOf(request, trust));
      return elevated.ok;
    },

    endLogin: ({ createdUntilMs, ...login }, request) =>
      endUpstream(
        deps,
        { ...login, createdUntil: wallMs(createdUntilMs), leftMs: createdUntilMs - Date.now() },
        request === undefined ? UNKNOWN_REQUESTER : requesterOf(request, trust),
      ),

    tokens: {
      isUsed: (issuer, usedToken) => store.isNoted({ issuer, usedToken }),
      use: (issuer, usedToken, lifeMs) => store.note({ issuer, usedToken }, lifeMs),
    },

    async end(request, shown) {
      const found = presented(request);
      const sent = sentBy(request);
      const old = oldCookiesAfterLogout(config.migrateCookies, config.cookie, sent);
      const cookies = [...cookiesAfterLogout(deps, sent), ...old];
      if (!found.ok && found.reason !== "ambiguous") return { ok: true, subject: undefined, cookies };
      const current = await currentOf(request);
      const session = current && (await store.find(current));
      const requester = requesterOf(request, trust);
      const ended = found.ok ? await logoutByCookie(deps, found.tokens, requester, undefined, shown) : found;
      if (!ended.ok && ended.reason === "unknown_session") return { ok: true, subject: undefined, cookies: [] };
      if (!ended.ok) return { ok: false, cookies: cookiesElsewhere(deps, sent) };
      return { ok: true, subject: session?.ok ? session.session.subject : undefined, cookies };
    },
  };
}

function requesterOf(request: Request, trust: Trust): Requester {
  const source = new NodeRequestSource(request, trust);
  const [address, userAgent] = [source.address(), source.userAgent()];
  const correlation = () => source.correlation();
  return { address: () => address, userAgent: () => userAgent, correlation, adminName: undefined };
}

/** Returns the session of a user; undefined if a session cannot have the claims of the user. */
function wantedSession(config: Config, deps: Deps, user: User, source: NodeRequestSource) {
  const client = {
    userAgent: (source.userAgent() ?? "").slice(0, 512),
    ipAddress: source.address() ?? "",
    displayName: "",
  };
  try {
    const wanted = sessionOfLogin(config, {
      subject: user.subject,
      clientId: deps.audience,
      audience: deps.audience,
      claims: claimsOf(user.claims as JsonObject),
      client,
      ...(isKnown(user) && { authentication: authenticationOf(user) }),
      kind: "browser",
      upstream: user.upstream,
      maxLifetimeMs: user.endsAtMs && user.endsAtMs - Date.now(),
    });
    requireAccessCookie(deps, wanted);
    return wanted;
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    deps.log.warn({ event: "sign_in_failed", reason: "claims" }, error.message);
    return undefined;
  }
}

const isKnown = ({ authTimeSeconds, methods, contextClass }: User) =>
  authTimeSeconds !== undefined || methods.length > 0 || contextClass !== "";

function authenticationOf({ authTimeSeconds = 0, methods, contextClass }: User): Authentication {
  return { time: wallMs(authTimeSeconds * 1000), methods, contextClass };
}
