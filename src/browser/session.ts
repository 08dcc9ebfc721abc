/** The session of a page. */
import { SessionError } from "./errors.ts";
import { authorizedFetch } from "./fetch.ts";
import { type AuthInterceptor, authInterceptor } from "./interceptor.ts";
import { abortable, type Realm } from "./realm.ts";
import { createRenewal } from "./renewal.ts";
import { createDisplay, type Snapshot, UNKNOWN } from "./snapshot.ts";
import type { Claims } from "./token.ts";

/** The least remaining validity of a token, ms, if the page does not set it. */
const MIN_VALIDITY_MS = 10_000;

export type SessionOptions = {
  /** The origin of the service. Default: the page's. */
  readonly baseUrl?: string;
  /** Other origins that `fetch` may send the access token to. Always included: the page's and the service's. */
  readonly origins?: readonly string[];
  /** How long a token that `accessToken` returns stays valid at the least, ms. Default: 10 s. */
  readonly minValidityMs?: number;
  /**
   * The value of `SESSION_HINT_COOKIE` of the service. Without that cookie nobody is signed in, and no request is made. The service sets
   * it with each refresh, so set this option only once all sessions have been refreshed with it.
   */
  readonly hintCookie?: string;
  /**
   * What a server rendered the page with: the page begins as `active`, without a refresh. Where the hint cookie names another session,
   * a refresh follows. `initialOf` of `@session-service/server` makes it.
   */
  readonly initial?:
    | {
        readonly claims: Claims;
        /** Without it the first call that needs a token refreshes. */
        readonly text?: string;
        /** How old the token was when the page was rendered, ms. */
        readonly ageMs: number;
      }
    | undefined;
};

export type Session = {
  /**
   * Returns a valid access token. Any number of calls in any number of tabs cause one refresh.
   *
   * @throws SessionError `ended`, `unavailable` or `disposed`
   * @example
   * socket.send(JSON.stringify({ authorization: await session.accessToken() }));
   */
  accessToken(): Promise<string>;
  /**
   * Calls `fetch` with the access token. A 401 leads to at most one refresh and one retry. A URL outside the page's origin, the
   * service's and `origins` is refused with a TypeError: it would receive the token.
   *
   * @throws SessionError, and what `fetch` throws
   * @example
   * const response = await session.fetch("/api/orders", { method: "POST", body });
   */
  fetch(input: string | URL | Request, init?: RequestInit): Promise<Response>;
  /**
   * Does the same for Connect transports, with the same origins. A stream is not started again.
   *
   * @example
   * createConnectTransport({ baseUrl: "/", interceptors: [session.interceptor] });
   */
  readonly interceptor: AuthInterceptor;
  /** `snapshot` as it was at first, also on the server that rendered the page. */
  readonly initial: Snapshot;
  /** What is known now. A new object after each change, so that it can be compared. */
  readonly snapshot: Snapshot;
  /**
   * Calls `listener` after each change of `snapshot`. The first subscription finds out whether somebody is signed in.
   *
   * @returns a function that ends the subscription
   * @example
   * session.subscribe(() => {
   *   if (session.snapshot.state === "ended") location.assign("/login");
   * });
   */
  subscribe(listener: () => void): () => void;
  /**
   * Finds out again, in all tabs, who is signed in: for use after a sign-in or a step-up. Without `hintCookie`, every page that a login
   * leads to must call it.
   *
   * @throws SessionError
   */
  begin(): Promise<void>;
  /**
   * Signs the user out, in all tabs.
   *
   * @throws SessionError `unavailable` if the service cannot be reached: the session then continues
   * @example
   * signOutButton.onclick = () => session.end().catch(() => show("Still signed in. Try again."));
   */
  end(): Promise<void>;
  /** Leaves no timer, lock, channel, request or listener behind. Calls in progress reject with `disposed`. */
  dispose(): void;
};

/**
 * Creates the session of this page. Create one and share it. Nothing happens until it is used. A server may create it and must not use it.
 *
 * @param realm the global object; tests bring their own
 * @example
 * export const session = createSession();
 * const orders = await session.fetch("/api/orders");
 */
export function createSession(options: SessionOptions = {}, realm: Realm = globalThis): Session {
  const pageOrigin = realm.location?.origin;
  const baseUrl = (options.baseUrl ?? pageOrigin ?? "").replace(/\/$/, "");
  const { initial } = options;
  const disposal = new AbortController();
  const disposed = disposal.signal;
  const display = createDisplay(realm, disposed);
  let renewal: ReturnType<typeof createRenewal> | undefined;

  /** Opens what is needed, at the first use. */
  function use(): NonNullable<typeof renewal> {
    if (disposed.aborted) throw new SessionError("disposed");
    renewal ??= createRenewal(
      realm,
      baseUrl,
      options.hintCookie,
      disposed,
      display,
      initial && {
        ...initial,
        atMs: realm.Date.now() - initial.ageMs,
      },
    );
    return renewal;
  }

  const accessToken = async () => use().accessToken(options.minValidityMs ?? MIN_VALIDITY_MS);

  async function tokenFor(url: string, signal: AbortSignal, mode?: string): Promise<string> {
    signal.throwIfAborted();
    const originOf = (text: string) => new URL(text, pageOrigin).origin;
    const known = [pageOrigin, baseUrl, ...(options.origins ?? [])];
    if (mode !== "no-cors" && known.some((one) => one && originOf(one) === originOf(url))) {
      return abortable(signal, accessToken());
    }
    throw new TypeError(`no token: ${url}`);
  }

  const replace = async (text: string, signal: AbortSignal) => abortable(signal, use().replace(text));

  if (initial) use();
  return {
    accessToken,
    fetch: authorizedFetch(tokenFor, replace, realm),
    interceptor: authInterceptor(tokenFor, replace),
    initial: initial ? { state: "active", claims: initial.claims } : UNKNOWN,
    get snapshot() {
      return display.snapshot;
    },
    subscribe(listener) {
      const stop = display.listen(listener);
      if (display.snapshot.state === "unknown") accessToken().catch(() => {});
      return stop;
    },
    async begin() {
      use().begin();
      await accessToken();
    },
    end: async () => use().signOut(),
    dispose: () => disposal.abort(),
  };
}
