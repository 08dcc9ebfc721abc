import { OAuthServiceRoutes } from "../../../gen/auth/v1/oauth_http.ts";
import { OAuthService } from "../../../gen/auth/v1/oauth_pb.ts";
import { SessionServiceRoutes } from "../../../gen/auth/v1/session_http.ts";
import { SessionService } from "../../../gen/auth/v1/session_pb.ts";
import type { Handler, Route } from "../../platform/listener/handler.ts";
import { publicJson } from "../../platform/listener/pages.ts";
import { matchOrigins } from "../../platform/net/origins.ts";
import { jsonOptions } from "../api/connect-options.ts";
import { METADATA_PATH } from "../api/errors/oauth-errors.ts";
import { crossSiteDefence, PASS_ON_HOST, type Permissions } from "../api/gates/gates.ts";
import { observeRefusals } from "../api/gates/observed-refusals.ts";
import { validated } from "../api/gates/validation.ts";
import { measureRefused } from "../api/outcomes.ts";
import { requireCredential } from "../api/public/credentials.ts";
import type { Migration } from "../api/public/migration.ts";
import {
  MAX_OAUTH_REQUEST_BYTES,
  metadataAliases,
  type OAuthServiceDeps,
  oauthService,
} from "../api/public/oauth-service.ts";
import { sessionService } from "../api/public/session-service.ts";
import { withSmallMessages } from "../api/router.ts";
import type { Config } from "../config/config.ts";
import { referencePages } from "../pages/reference/pages.ts";
import { type DocsSignInDeps, docsSignInRoute } from "../pages/reference/sign-in.ts";
import { metadataPaths, type StreamPlace, transmitterMetadata } from "../signals/streams/configuration.ts";
import { type ApiDeps, apiHandler } from "./api-handler.ts";
import { errorResponder } from "./error-responder.ts";
import { type OfferedService, offer } from "./offered-service.ts";

type Deps = OAuthServiceDeps & {
  /** Undefined if the reference page offers no sign-in. */
  readonly docsSignIn?: DocsSignInDeps | undefined;
  /** Undefined if nobody signs in by a provider. */
  readonly providerRoute?: Route | undefined;
  /** Undefined if no sessions of another system are migrated. */
  readonly migration?: Migration | undefined;
  /** The configuration of streams of the Shared Signals Framework (SSF); undefined if there are none. */
  readonly streams?: StreamPlace | undefined;
};

const PERMISSIONS: Permissions = {
  host: PASS_ON_HOST,
  origin: "ALLOWED_ORIGINS with this origin",
  same_site: "ALLOW_SAME_SITE=true",
  cross_site: "COOKIE_SAMESITE=None",
};

export function publicHandler(config: Config, apiDeps: ApiDeps, deps: Deps): Handler {
  const { allowedOrigins, allowSameSite, cookie } = config;
  const { docsSignIn, providerRoute } = deps;
  const routes = [
    ...(docsSignIn === undefined ? [] : [docsSignInRoute(docsSignIn)]),
    ...(providerRoute === undefined ? [] : [providerRoute]),
  ];
  // With SameSite=None, allowed origins are expected to call from other sites.
  const isAllowed = matchOrigins(allowedOrigins);
  const rules = { isAllowed, allowSameSite, allowCrossSite: cookie.sameSite === "None" };
  // The token endpoint needs no cross-site check: its token is in the body, and another site's page cannot make a browser add it.
  const crossSite = crossSiteDefence(rules, PERMISSIONS, apiDeps, OAuthService);
  const reportRefusal = observeRefusals(apiDeps.telemetry?.interceptors ?? [], measureRefused(apiDeps.metrics));
  return apiHandler(config, apiDeps, {
    services: servicesOf(config, deps),
    ...(allowedOrigins.length > 0 && { isAllowed }),
    reflection: config.reflection,
    gates: [crossSite, requireCredential(deps, reportRefusal)],
    pages: [
      ...referencePages({ api: "public", page: config.docs, signIn: docsSignIn !== undefined }),
      ...transmitterPages(config, deps.streams),
      // Clients look for the metadata at several paths.
      ...(config.oauthEndpoints ? metadataAliases(deps.issuer).map((path) => [path, METADATA_PATH] as const) : []),
    ],
    notFound: errorResponder("E404_NOT_FOUND"),
    badRequest: errorResponder("E400_INVALID_REQUEST"),
    ...(routes.length > 0 && { route: () => firstOf(routes) }),
  });
}

/** Returns the handler of the first route that has one for a request. */
const firstOf =
  (routes: readonly Route[]): Route =>
  (request) =>
    routes.map((route) => route(request)).find((handler) => handler !== undefined);

function servicesOf({ maxBodyBytes, oauthEndpoints }: Config, deps: Deps): OfferedService[] {
  const own = sessionService(deps);
  const handlers = validated(SessionService, deps.migration?.around(own) ?? own);
  const services: OfferedService[] = [
    {
      service: SessionService,
      table: SessionServiceRoutes,
      register: (router) => withSmallMessages(router, maxBodyBytes).service(SessionService, handlers),
    },
  ];
  if (!oauthEndpoints) return services;
  const table = { ...OAuthServiceRoutes, formPosts: true };
  const options = { readMaxBytes: Math.min(maxBodyBytes, MAX_OAUTH_REQUEST_BYTES) };
  const { grantToken } = OAuthService.method;
  return [
    ...services,
    offer(OAuthService, oauthService(deps), table, (method) =>
      // Not every grant has every member, and OAuth libraries refuse an empty refresh token.
      method === grantToken ? { ...options, jsonOptions: { ...jsonOptions, alwaysEmitImplicit: false } } : options,
    ),
  ];
}

/** Returns the pages that receivers of signals find at the issuer. The endpoints themselves are on the admin API. */
function transmitterPages({ jwksMaxAgeMs }: Config, streams: StreamPlace | undefined) {
  if (streams === undefined) return [];
  const text = JSON.stringify(transmitterMetadata(streams));
  const page = () => publicJson(() => text, jwksMaxAgeMs / 1000);
  return metadataPaths(streams.issuer).map((path) => [path, page] as const);
}
