/**
 * Serves sign-in: `/v1/auth/login` leads to a provider, `/v1/auth/callback` creates or elevates the session, `/v1/auth/sign-out` ends it.
 * Browsers navigate to these routes, so they respond with redirects and pages. Between two requests, the browser keeps the login
 * (pending-logins.ts). Two further routes are for providers, which report logouts and other security events.
 */
import { type HttpRequest, type HttpResponse, type Route, respond } from "../../platform/listener/handler.ts";
import type { ProviderSettings } from "../config/providers.ts";
import { BACKCHANNEL_LOGOUT, createBackchannelLogout } from "./backchannel-logout.ts";
import { createPages, type SignInReply, send, withCookies } from "./pages.ts";
import { LOGIN, loginUrl, wishesOf } from "./parameters.ts";
import { createPendingLogins, type PendingLogin } from "./pending-logins.ts";
import type { SessionsOfBrowsers } from "./ports.ts";
import { createProvider, type ProviderFailure } from "./provider.ts";
import type { ReceiverDeps } from "./receiver.ts";
import { destinationOf } from "./return-to.ts";
import { type AcceptEvent, createSecurityEvents, SECURITY_EVENTS } from "./security-events.ts";
import { type User, userOf } from "./user.ts";

type Deps = {
  /** The origin that browsers use. */
  readonly origin: string;
  readonly providers: () => readonly ProviderSettings[];
  readonly sessions: SessionsOfBrowsers;
  readonly acceptEvent: AcceptEvent;
  readonly seal: Parameters<typeof createPendingLogins>[0]["seal"];
  /** Returns whether pages of another origin may use the service. */
  readonly isAllowed: (origin: string) => boolean;
  /** Returns whether another site led the browser to send the request. */
  readonly isForeign: (request: HttpRequest) => boolean;
  /** Returns whether requests are accepted, or refused because of overload. */
  readonly accept: () => boolean;
  /** A style sheet for the pages. */
  readonly style: string | undefined;
  /** Returns ms since the epoch. */
  readonly clock: () => number;
  readonly log: Record<"info" | "warn", (fields: object, message: string) => void>;
  /** Called if the store does not respond, and for a bug. */
  readonly onError: (error: unknown) => void;
  readonly takeFailure: ReceiverDeps["takeFailure"];
  /** Counts a request that has no authentic credential, although its response is no refusal. */
  readonly noteUnauthenticated: (request: HttpRequest) => void;
};

const CALLBACK = "/v1/auth/callback";
const SIGN_OUT = "/v1/auth/sign-out";

type Context = Deps & {
  readonly pages: ReturnType<typeof createPages>;
  readonly pending: ReturnType<typeof createPendingLogins>;
  readonly providerOf: (settings: ProviderSettings) => ReturnType<typeof createProvider>;
};

export function createSignIn(deps: Deps): Route {
  const { origin, seal, clock, onError } = deps;
  const pages = createPages(deps.style);
  const pending = createPendingLogins({ seal, clock, isSecure: origin.startsWith("https:") });
  const context = { ...deps, pages, pending, providerOf: createProviders() };
  const receiving = { ...deps, end: deps.sessions.endLogin, tokens: deps.sessions.tokens };
  const verify = (settings: ProviderSettings, token: string) => context.providerOf(settings).verifyLogout(token);
  const receivers = new Map([
    [BACKCHANNEL_LOGOUT, createBackchannelLogout({ ...receiving, verify })],
    [SECURITY_EVENTS, createSecurityEvents(deps.acceptEvent, receiving)],
  ]);

  const handle = (request: HttpRequest, response: HttpResponse) => {
    if (request.method !== "GET") {
      const status = request.method === "OPTIONS" ? 204 : 405;
      return respond(response, status, { allow: "GET, OPTIONS" });
    }
    serve(context, request)
      .catch((error: unknown) => {
        onError(error);
        return pages.problem("unavailable", LOGIN);
      })
      .then((reply) => send(response, reply))
      .catch(() => response.destroy());
  };
  return ({ url = "" }) => receivers.get(url) ?? (isOwn(url) ? handle : undefined);
}

function createProviders(): Context["providerOf"] {
  // Settings are new objects after a change of the file, so nothing of the earlier ones stays in use.
  const known = new WeakMap<ProviderSettings, ReturnType<typeof createProvider>>();
  return (settings) => {
    const provider = known.get(settings) ?? createProvider(settings);
    known.set(settings, provider);
    return provider;
  };
}

/**
 * Returns the callback of a provider. If there are several providers, each has one of its own, so that the response of one cannot be taken
 * for that of another (RFC 9700 section 4.4).
 */
const callbackOf = ({ origin, providers }: Context, { name }: ProviderSettings) =>
  origin + (providers().length > 1 ? `${CALLBACK}/${name}` : CALLBACK);

async function serve(context: Context, request: HttpRequest): Promise<SignInReply> {
  const { pages } = context;
  const url = URL.parse(request.url ?? "", context.origin);
  // A browser that loads a page before the user asks for it may neither sign the user in nor out.
  if (url === null || request.headers["sec-purpose"] !== undefined) return pages.problem("bad_request");
  const { pathname, search, searchParams } = url;
  if (pathname === SIGN_OUT) return signOut(context, request, searchParams);
  if (!context.accept()) return pages.problem("unavailable", request.url);
  if (pathname === LOGIN) return login(context, request, searchParams);
  return callback(context, request, pathname === CALLBACK ? undefined : pathname.slice(CALLBACK.length + 1), search);
}

function destination({ origin, isAllowed }: Context, query: URLSearchParams): string | undefined {
  const [text = "/", ...others] = query.getAll("return_to");
  return others.length > 0 ? undefined : destinationOf(text, origin, isAllowed);
}

async function login(context: Context, request: HttpRequest, query: URLSearchParams): Promise<SignInReply> {
  const { pages, pending } = context;
  context.noteUnauthenticated(request);
  const target = destination(context, query);
  const wishes = wishesOf(query);
  if (target === undefined || wishes === undefined) return pages.problem("bad_request");
  const providers = context.providers();
  const name = query.get("provider");
  const only = name === null && providers.length === 1 ? providers[0] : undefined;
  const settings = only ?? providers.find((one) => one.name === name);
  if (settings === undefined) {
    if (name !== null) return pages.problem("bad_request");
    return pages.choice(providers.map((one) => ({ href: loginUrl(query, one.name), text: one.title })));
  }
  const begun = await context.providerOf(settings).begin(callbackOf(context, settings), wishes);
  if (!begun.ok) return failed(context, settings, begun, `${LOGIN}?${query}`);
  const { maxAgeSeconds, acrValues } = wishes;
  const isStepUp = maxAgeSeconds !== undefined || acrValues !== undefined;
  const elevates = isStepUp ? await context.sessions.current(request) : undefined;
  const cookies = pending.begin(request.headers.cookie ?? "", {
    provider: settings.name,
    ...begun.secrets,
    destination: target,
    ...(maxAgeSeconds !== undefined && { maxAgeSeconds }),
    ...(acrValues !== undefined && { acrValues }),
    ...(elevates !== undefined && { elevates }),
  });
  if (cookies === undefined) return pages.problem("bad_request");
  return { location: begun.url.href, cookies };
}

async function callback(
  context: Context,
  request: HttpRequest,
  name: string | undefined,
  search: string,
): Promise<SignInReply> {
  const { pages, pending } = context;
  const [state = "", ...others] = new URLSearchParams(search).getAll("state");
  const found = others.length > 0 ? undefined : pending.find(request.headers.cookie ?? "", state);
  if (found === undefined) return pages.problem("expired", LOGIN);
  const reply = await complete(context, request, found, name, search).catch((error: unknown) => {
    context.onError(error);
    return pages.problem("unavailable", againUrl(found));
  });
  return withCookies(reply, [pending.end(state)]);
}

async function complete(
  context: Context,
  request: HttpRequest,
  found: PendingLogin,
  name: string | undefined,
  search: string,
): Promise<SignInReply> {
  const { pages } = context;
  const providers = context.providers();
  const settings = providers.find((one) => one.name === found.provider);
  if (settings === undefined) return pages.problem("expired", LOGIN);
  const again = againUrl(found);
  if (name !== (providers.length > 1 ? settings.name : undefined)) {
    return failed(context, settings, { ok: false, reason: "invalid", code: "other_provider" }, again);
  }
  const url = Object.assign(new URL(callbackOf(context, settings)), { search });
  const finished = await context.providerOf(settings).finish(url, found);
  if (!finished.ok) return failed(context, settings, finished, again);
  const prefixes = providers.map(({ subjectPrefix }) => subjectPrefix);
  const mapped = userOf(settings, finished.claims, prefixes, context.clock());
  if (!mapped.ok) {
    report(context, settings, `${mapped.reason}:${mapped.path}`);
    if (mapped.reason === "over") return pages.problem("over", again);
    return mapped.reason === "malformed" ? pages.problem("invalid", again) : pages.problem("refused");
  }
  return openSession(context, request, found, mapped.user);
}

/** Creates the session of a user who has signed in, or raises the authentication of the session that the browser has. */
async function openSession(
  { pages, sessions }: Context,
  request: HttpRequest,
  found: PendingLogin,
  user: User,
): Promise<SignInReply> {
  const { destination: location, acrValues, elevates } = found;
  // The resource server that wants a stronger sign-in would send the browser back at once, without end.
  if (acrValues !== undefined && !acrValues.includes(user.contextClass)) return pages.problem("too_weak");
  if (elevates !== undefined && (await sessions.elevate(elevates, user, request))) return { location, cookies: [] };
  const created = await sessions.create(user, request);
  if (created.ok) return { location, cookies: created.cookies };
  return pages.problem(created.problem, created.problem === "refused" ? undefined : againUrl(found));
}

async function signOut(context: Context, request: HttpRequest, query: URLSearchParams): Promise<SignInReply> {
  const target = destination(context, query);
  const [shown = "", ...others] = query.getAll("session_id");
  if (target === undefined || others.length > 0) return context.pages.problem("bad_request");
  if (context.isForeign(request)) return context.pages.problem("foreign", "/");
  const ended = await context.sessions.end(request, shown);
  const { cookies } = ended;
  if (!ended.ok) return withCookies(context.pages.problem("still_signed_in", request.url), cookies);
  if (ended.subject === undefined) context.noteUnauthenticated(request);
  const settings = ended.subject === undefined ? undefined : providerOfSubject(context.providers(), ended.subject);
  const url = settings && (await context.providerOf(settings).signOutUrl(target));
  return { location: url?.href ?? target, cookies };
}

function failed(context: Context, settings: ProviderSettings, failure: ProviderFailure, again: string): SignInReply {
  report(context, settings, failure.code);
  return context.pages.problem(failure.reason, again);
}

function report({ log }: Context, { name }: ProviderSettings, reason: string): void {
  log.warn({ event: "sign_in_failed", provider: name, reason }, "sign_in_failed");
}

const againUrl = ({ destination: target, provider }: PendingLogin) =>
  `${LOGIN}?${new URLSearchParams({ return_to: target, provider })}`;

function isOwn(url: string): boolean {
  const [path = ""] = url.split("?", 1);
  return path === LOGIN || path === CALLBACK || path === SIGN_OUT || /^\/v1\/auth\/callback\/[a-z0-9-]+$/.test(path);
}

/** Returns the provider with the longest prefix that a subject has. */
function providerOfSubject(providers: readonly ProviderSettings[], subject: string): ProviderSettings | undefined {
  const matching = providers.filter(({ subjectPrefix }) => subject.startsWith(subjectPrefix));
  return matching.sort((one, other) => other.subjectPrefix.length - one.subjectPrefix.length)[0];
}
