/** The session of a page, as applications use it. */
import { type AuthInterceptor, authInterceptor, authorizedFetch } from "./authorized-calls.ts";
import { SessionError } from "./errors.ts";
import type { Realm } from "./realm.ts";
import { createRenewal } from "./renewal.ts";
import { createDisplay, type Snapshot } from "./snapshot.ts";
import { type Claims, holdToken } from "./token.ts";

const MIN_VALIDITY_MS = 10_000;

export type SessionOptions = {
  /** The origin of the service. Default: the origin of the page. */
  readonly baseUrl?: string;
  /** Other origins to which `fetch` may send the access token. The origins of the page and of the service are always included. */
  readonly origins?: readonly string[];
  /** How long a token from `accessToken` is valid at least, in ms. Default: 10 s. */
  readonly minValidityMs?: number;
  /**
   * The value of `SESSION_HINT_COOKIE` of the service. If the cookie is absent, nobody is signed in, and no request is made. The service
   * sets the cookie with each refresh. So set this option only when every session has been refreshed since the variable was set.
   */
  readonly hintCookie?: string;
  /**
   * The session with which a server rendered the page, from `initialOf` of `@session-service/server`. The page begins as `active`, without
   * a refresh, unless the hint cookie names another session.
   */
  readonly initial?: Initial | undefined;
};

/** A session as a server has rendered it. */
export type Initial = {
  readonly claims: Claims;
  /** The token. Without it, the first call that needs a token causes a refresh. */
  readonly text?: string;
  /** The age of the token when the page was rendered, in ms. */
  readonly ageMs: number;
};

export type Session = {
  /**
   * Returns a valid access token. Any number of calls in any number of tabs cause one refresh.
   * @throws SessionError `ended`, `unavailable` or `disposed`
   * @example
   * socket.send(JSON.stringify({ authorization: await session.accessToken() }));
   */
  accessToken(): Promise<string>;
  /**
   * Calls `fetch` with the access token. A 401 leads to at most one refresh and one retry. A URL whose origin is not that of the page, that
   * of the service or one of `origins` is refused with a TypeError, because it would receive the token.
   * @throws SessionError, and what `fetch` throws
   * @example
   * const response = await session.fetch("/api/orders", { method: "POST", body });
   */
  fetch(input: string | URL | Request, init?: RequestInit): Promise<Response>;
  /**
   * An interceptor for Connect transports that does the same as `fetch`, for the same origins. It does not restart a stream.
   * @example
   * createConnectTransport({ baseUrl: "/", interceptors: [session.interceptor] });
   */
  readonly interceptor: AuthInterceptor;
  /** The first value of `snapshot`, which is also the one on the server that rendered the page. */
  readonly initial: Snapshot;
  /** The current state. Each change makes a new object, so that objects can be compared. */
  readonly snapshot: Snapshot;
  /**
   * Calls `listener` after each change of `snapshot`. While its state is `unknown`, a subscription checks whether somebody is signed in,
   * but not on a server.
   * @returns a function that ends the subscription
   * @example
   * session.subscribe(() => {
   *   if (session.snapshot.state === "ended") location.assign("/login");
   * });
   */
  subscribe(listener: () => void): () => void;
  /**
   * Checks again, in all tabs, who is signed in. Call it after a sign-in or a step-up; without `hintCookie`, on each page after a login.
   * @param initial what a server has rendered after the sign-in. This tab then takes it, without a request; nothing happens if the tab has
   * this session already
   * @throws SessionError
   */
  begin(initial?: Initial): Promise<void>;
  /**
   * Signs the user of this page out, in all tabs. If another user has signed in since, that session continues.
   * @throws SessionError `unavailable` if the service cannot be reached, or the user has signed in again: the session then continues
   * @example
   * signOutButton.onclick = () => session.end().catch(() => show("Still signed in. Try again."));
   */
  end(): Promise<void>;
  /** Ends the kit: no timer, lock, channel, request or listener remains. Calls in progress reject with `disposed`. */
  dispose(): void;
};

/**
 * Creates the session of this page. Create one and share it. Without `initial`, nothing happens until it is used. A server may create it,
 * but must not use it.
 * @param realm the global object; tests bring their own
 * @example
 * export const session = createSession();
 * const orders = await session.fetch("/api/orders");
 */
export function createSession(options: SessionOptions = {}, realm: Realm = globalThis): Session {
  const pageOrigin = realm.location?.origin;
  const { initial, baseUrl = pageOrigin } = options;
  const disposal = new AbortController();
  const disposed = disposal.signal;
  const display = createDisplay(realm, disposed);
  let renewal: ReturnType<typeof createRenewal> | undefined;

  const arrived = (given?: Initial) => given && holdToken({ ...given, atMs: realm.Date.now() - given.ageMs }, realm);

  /** Opens channels and listeners at the first use. */
  function use(): NonNullable<typeof renewal> {
    if (disposed.aborted) throw new SessionError("disposed");
    // The URL stays as the application spells it, because the device kit has named the keys that it keeps by it.
    renewal ??= createRenewal(
      realm,
      (baseUrl as string).replace(/\/$/, ""),
      options.hintCookie,
      disposed,
      display,
      arrived(initial),
    );
    return renewal;
  }

  const accessToken = async () => use().accessToken(options.minValidityMs ?? MIN_VALIDITY_MS);

  async function tokenFor(url: string, mode?: string): Promise<string> {
    const originOf = (text: string) => new URL(text, pageOrigin).origin;
    const known = [pageOrigin, baseUrl, ...(options.origins ?? [])];
    if (mode !== "no-cors" && known.some((one) => one && originOf(one) === originOf(url))) return accessToken();
    throw new TypeError(`no token: ${url}`);
  }

  const replace = (text: string) => use().replace(text);

  // On a server it has no use, and would read the clock, which prerendering does not allow.
  if (pageOrigin && initial) use();
  return {
    accessToken,
    fetch: authorizedFetch(tokenFor, replace, realm),
    interceptor: authInterceptor(tokenFor, replace),
    initial: initial ? { state: "active", claims: initial.claims } : display.snapshot,
    get snapshot() {
      return display.snapshot;
    },
    subscribe(listener) {
      const stop = display.listen(listener);
      // A server renders for many users, and has none of their cookies.
      if (pageOrigin && display.snapshot.state === "unknown") accessToken().catch(() => {});
      return stop;
    },
    async begin(given) {
      use().begin(arrived(given));
      if (!given) await accessToken();
    },
    end: async () => use().signOut(),
    dispose: () => disposal.abort(),
  };
}
