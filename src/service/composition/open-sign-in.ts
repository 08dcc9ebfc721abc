/** Composes sign-in by OpenID Connect providers. Its modules are loaded only if a provider is configured. */
import type { JsonObject } from "@bufbuild/protobuf";
import type { HttpRequest, Route } from "../../platform/listener/handler.ts";
import { NodeRequestSource } from "../../platform/listener/request-source.ts";
import { crossSiteFault } from "../../platform/net/cross-site.ts";
import { matchOrigins } from "../../platform/net/origins.ts";
import { proxyTrust } from "../../platform/net/proxy-trust.ts";
import { type AccessCookieDeps, requireAccessCookie } from "../api/admin/access-cookie.ts";
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
import { type FailureDeps, takeFailure } from "../session/attempts.ts";
import type { Requester } from "../session/audit.ts";
import { AUTHENTICATION_CLAIMS, RESERVED_CLAIMS } from "../session/claims.ts";
import { StoreUnavailable } from "../session/ports.ts";
import type { BrowserCookies } from "../sign-in/browser-sessions.ts";
import type { KeyRing } from "../tokens/key-ring.ts";
import { createSecretSeal } from "../tokens/sealed-secret.ts";
import { orStartError } from "./secrets.ts";

type SignInModules = typeof import("../sign-in/sign-in.ts") &
  typeof import("../sign-in/browser-sessions.ts") &
  typeof import("../sign-in/security-events.ts") &
  typeof import("../sign-in/security-polls.ts");

export type LoadedProviderSignIn = SignInModules & { readonly providers: ProvidersFile };

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
  return {
    ...(await import("../sign-in/sign-in.ts")),
    ...(await import("../sign-in/browser-sessions.ts")),
    ...(await import("../sign-in/security-events.ts")),
    ...(await import("../sign-in/security-polls.ts")),
    providers,
  };
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

type SessionDeps = Omit<
  Parameters<SignInModules["sessionsOfBrowsers"]>[0],
  "cookies" | "requesterOf" | "defaults" | "claimsText" | "requireCookieSize"
>;

type Deps = SessionDeps &
  AccessCookieDeps &
  FailureDeps & {
    readonly cookie: RefreshCookie;
    readonly device: LogoutDeps["device"];
    readonly ring: KeyRing;
    readonly issuer: string;
    readonly accept: () => boolean;
    readonly stopping: AbortSignal;
    readonly log: Logger;
    readonly onUnavailable: (error: Error) => void;
  };

type ProviderSignIn = {
  readonly route: Route;
  /** Begins to poll transmitters for security events, until the service stops. */
  pollEvents(): void;
};

export function openProviderSignIn(config: Config, deps: Deps, modules: LoadedProviderSignIn): ProviderSignIn {
  const { allowedOrigins, allowSameSite, signInOrigin, signInStyle } = config;
  const { log, stopping } = deps;
  const isAllowed = matchOrigins(allowedOrigins);
  const trust = proxyTrust(config.trustProxy);
  const rules = { isAllowed, allowSameSite, allowCrossSite: false };
  const providers = () => modules.providers.current;
  const requesterOf = (request: HttpRequest) => requesterBehind(request, trust);
  const sessions = modules.sessionsOfBrowsers({
    ...deps,
    requesterOf,
    defaults: config,
    cookies: cookiesOfBrowsers(config, deps, trust),
    claimsText: (claims) => claimsOf(claims as JsonObject),
    requireCookieSize: (wanted) => requireAccessCookie(deps, wanted),
  });
  const acceptEvent = modules.createAcceptEvent({ providers, end: sessions.endLogin, log });
  const route = modules.createSignIn({
    log,
    accept: deps.accept,
    origin: signInOrigin ?? new URL(deps.issuer).origin,
    providers,
    sessions,
    acceptEvent,
    seal: createSecretSeal(deps.ring, "sign-in"),
    isAllowed,
    isForeign(request) {
      const source = new NodeRequestSource(request, trust);
      const { "sec-fetch-site": site = null, origin = null } = request.headers;
      return (
        crossSiteFault({ site: site && String(site), origin }, (one) => one === source.origin(), rules) !== undefined
      );
    },
    takeFailure: (request) => takeFailure(deps, requesterOf(request)),
    noteUnauthenticated: (request) => new NodeRequestSource(request, trust).noteUnauthenticated(),
    onError(error) {
      if (error instanceof StoreUnavailable) deps.onUnavailable(error);
      else log.error({ event: "bug", err: error }, "bug");
    },
    style: signInStyle,
    clock: Date.now,
  });
  return { route, pollEvents: () => modules.pollEvents({ providers, accept: acceptEvent, log, stopping }) };
}

type Trust = ReturnType<typeof proxyTrust>;

function cookiesOfBrowsers(config: Config, deps: Deps, trust: Trust): BrowserCookies {
  const { cookie } = deps;
  const sentBy = (request: HttpRequest) => ({
    header: request.headers.cookie ?? null,
    origin: new NodeRequestSource(request, trust).origin(),
  });
  return {
    read: (request) => cookie.read(request.headers.cookie ?? null),
    set: cookie.set,
    removeElsewhere: (request) => cookiesElsewhere(deps, sentBy(request)),
    removeAll(request) {
      const sent = sentBy(request);
      return [...cookiesAfterLogout(deps, sent), ...oldCookiesAfterLogout(config.migrateCookies, config.cookie, sent)];
    },
  };
}

function requesterBehind(request: HttpRequest, trust: Trust): Requester {
  const source = new NodeRequestSource(request, trust);
  const [address, userAgent] = [source.address(), source.userAgent()];
  const correlation = () => source.correlation();
  return { address: () => address, userAgent: () => userAgent, correlation, adminName: undefined };
}
