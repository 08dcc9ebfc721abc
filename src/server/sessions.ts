/** The session of a browser, for servers that render pages. */
import { isHttpUrl } from "../platform/net/http-url.ts";
import { distinctValues, oldSessionOf, presentedBy, withSetCookies } from "./cookies.ts";
import { createRefresher } from "./refresh.ts";
import { createRenewal } from "./renewal.ts";
import { type Report, toSafeReport } from "./report.ts";
import { headersForService, mayRefresh } from "./request-headers.ts";
import { setCookiesOf } from "./set-cookie.ts";
import { createSignOut } from "./sign-out.ts";
import { createUserReader, ENDED, type TokenVerifier, UNAVAILABLE, type User } from "./user.ts";

export type ServerSessionsOptions = {
  /** The URL of the service's public API, such as `http://127.0.0.1:8080`. */
  readonly service: string;
  readonly verifier: TokenVerifier;
  /** The `ACCESS_COOKIE` of the service. Default: `access_token`. */
  readonly accessCookie?: string;
  /** The `COOKIE_NAME` of the service. Default: `refresh_token`. */
  readonly refreshCookie?: string;
  /** The `MIGRATE_COOKIES` of the service, whose sessions it continues. Default: none. */
  readonly migrateCookies?: readonly string[];
  /** The `REUSE_INTERVAL` of the service, in ms. Default: 10 s. For a quarter of it, requests with the same token share one refresh. */
  readonly reuseIntervalMs?: number;
  /** A token that expires sooner than this is renewed, in ms. Default: 10 s. */
  readonly minValidityMs?: number;
  /** How long a call to the service may take, in ms. Default: 5 s. */
  readonly timeoutMs?: number;
  /** The function that sends requests. Default: the `fetch` of the runtime. */
  readonly fetch?: typeof fetch;
  /** Returns the wall clock, in ms since the epoch. Default: `Date.now`. */
  readonly clock?: () => number;
  /** Receives the events of the kit, such as each refused request. Default: the first failure of each kind appears on the console. */
  readonly report?: Report;
};

/** The parts of a `Request` that the kit reads. */
export type PageRequest = { readonly method: string; readonly url: string; readonly headers: Headers };

export type Authentication = {
  readonly user: User;
  /** The cookies for the browser, unchanged. Empty for a request that shares the refresh of another, whose response has them. */
  readonly setCookies: readonly string[];
  /** All headers for the response to the browser: `setCookies` as `Set-Cookie`, those of device binding, and those for caches. */
  readonly responseHeaders: Headers;
  /** The request's headers for the code that renders the page, with the cookies as they will be after the response. */
  readonly forward: Headers;
};

export interface ServerSessions {
  /**
   * Determines who is signed in, and refreshes if the access token is absent or about to expire. Call it before the first byte of the
   * response, and send `responseHeaders`. It never rejects.
   * @param address the network address of the request's sender
   */
  authenticate(request: PageRequest, address?: string): Promise<Authentication>;
  /**
   * Returns who is signed in, by the headers `forward` that `authenticate` returned. It calls no service, so any code may use it. If these
   * are other headers, a user whose access token is absent is `unavailable` with the reason `adapter_missing`.
   */
  current(headers: Pick<Headers, "get">): Promise<User>;
  /**
   * Signs the user out. If the result is `unavailable`, the session continues.
   * @param sessionId `claims.sid` of the user whom the page shows. If another user has signed in since, that one stays signed in, and the
   * result is `active`. Default: the session of the browser ends, whoever it is of
   */
  signOut(request: PageRequest, address?: string, sessionId?: string): Promise<Authentication>;
  /** Passes an event to the option `report`. */
  readonly report: Report;
}

/** The kit, or a function that returns it. Adapters call the function with the first request, so that a build creates no kit. */
export type SessionsSource = ServerSessions | (() => ServerSessions);

/** The header that passes the result of `authenticate` to `current`. A browser cannot set it, because `forward` replaces it. */
const STATE_HEADER = "x-session-state";
/** The headers of the service's responses that the browser must receive. */
const FOR_BROWSERS = ["secure-session-registration", "secure-session-challenge"];

/**
 * Creates the session kit of a server. Create one for each process.
 * @throws TypeError if `service` or `verifier` is missing or of the wrong type
 * @example
 * ```ts
 * const sessions = createServerSessions({ service: "http://127.0.0.1:8080", verifier });
 * const { user, responseHeaders } = await sessions.authenticate(request);
 * ```
 */
export function createServerSessions(options: ServerSessionsOptions): ServerSessions {
  checkOptions(options);
  const { verifier, accessCookie = "access_token", refreshCookie = "refresh_token" } = options;
  const { minValidityMs = 10_000, clock = Date.now, migrateCookies = [] } = options;
  const report = toSafeReport(options.report);
  const deps = {
    service: options.service.replace(/\/$/, ""),
    fetch: options.fetch ?? ((...given: Parameters<typeof fetch>) => fetch(...given)),
    clock,
    timeoutMs: options.timeoutMs ?? 5_000,
    shareMs: (options.reuseIntervalMs ?? 10_000) / 4,
    report,
  };
  const refresh = createRefresher(deps);
  const clearAccess = `${accessCookie}=; Path=/; HttpOnly; Secure; SameSite=Lax; Max-Age=0`;
  /** Whether a call of `current` with the headers of a request that no adapter has seen was reported. */
  let isAdapterMissing = false;
  const { userOf, presentedUser } = createUserReader({ verifier, accessCookie, refreshCookie });
  const renew = createRenewal({ refresh, userOf, isStrict: deps.shareMs === 0, report });
  const askToSignOut = createSignOut({ ...deps, accessCookie, refreshCookie });
  /** The refresh cookie is kept, because this response may arrive after that of a new login. */
  const ended = (request: PageRequest, { headers }: { readonly headers: Headers }) => {
    const stale = distinctValues(request.headers.get("cookie"), accessCookie).length > 0 ? [clearAccess] : [];
    return outcome(request, ENDED, headers, [...setCookiesOf(headers), ...stale]);
  };

  const sessions: ServerSessions = {
    async authenticate(request, address) {
      const { headers } = request;
      const user = await presentedUser(headers);
      const isFresh = user.state === "active" && user.claims.exp * 1000 - clock() > minValidityMs;
      const presented = presentedBy(headers, refreshCookie) ?? oldSessionOf(headers, migrateCookies);
      if (isFresh || user.state === "unavailable" || !presented) return outcome(request, user);
      const unknown = user.state === "active" ? user : UNAVAILABLE;
      if (!mayRefresh(headers)) return outcome(request, unknown);
      const { refreshed, isFirst, renewed } = await renew(presented.id, headersForService(request, address));
      if (refreshed.state === "unavailable") return outcome(request, unknown);
      if (refreshed.state === "ended")
        return presented.mustRenew ? outcome(request, unknown) : ended(request, refreshed);
      const cookies = setCookiesOf(refreshed.headers);
      return outcome(request, renewed, refreshed.headers, cookies, isFirst ? cookies : []);
    },

    async current(headers) {
      const found = headers.get(STATE_HEADER);
      if (found === null && !isAdapterMissing) {
        isAdapterMissing = true;
        report({ event: "adapter_missing" });
      }
      const user = await presentedUser(headers);
      if (user.state !== "ended") return user;
      if (found !== null) return found === "ended" ? ENDED : UNAVAILABLE;
      return presentedBy(headers, refreshCookie) ? { ...UNAVAILABLE, reason: "adapter_missing" } : ENDED;
    },

    async signOut(request, address, sessionId) {
      const { state, headers } = await askToSignOut(headersForService(request, address), sessionId);
      if (state === "other") return sessions.authenticate(request, address);
      if (state === "absent") return ended(request, { headers });
      return outcome(request, state === "ended" ? ENDED : UNAVAILABLE, headers);
    },

    report,
  };
  return sessions;
}

/** Throws for what would otherwise be `unavailable` at each request, such as a variable of the environment that is not set. */
function checkOptions({ service, verifier }: Partial<ServerSessionsOptions> = {}): void {
  if (!isHttpUrl(service))
    throw new TypeError("createServerSessions: service must be an http:// or https:// URL without a password");
  if (typeof verifier?.verify !== "function")
    throw new TypeError("createServerSessions: verifier must be a verifier, as createVerifier makes it");
}

/**
 * Builds the result of `authenticate` or `signOut`.
 * @param from the headers of the service's response
 * @param known the cookies that the code that renders the page sees in place of those of the request
 * @param setCookies the cookies that this response sets in the browser
 */
function outcome(
  { headers }: PageRequest,
  user: User,
  from = new Headers(),
  known: readonly string[] = setCookiesOf(from),
  setCookies = known,
): Authentication {
  const forward = new Headers(headers);
  forward.set(STATE_HEADER, user.state);
  const cookie = withSetCookies(headers.get("cookie"), known);
  if (cookie) forward.set("cookie", cookie);
  else forward.delete("cookie");
  // Pages of a user must not be kept in a shared cache.
  const responseHeaders = new Headers({ vary: "Cookie", "cache-control": "private, no-store" });
  for (const line of setCookies) responseHeaders.append("set-cookie", line);
  for (const name of FOR_BROWSERS) {
    const value = from.get(name);
    if (value !== null) responseHeaders.set(name, value);
  }
  return { user, setCookies, responseHeaders, forward };
}
