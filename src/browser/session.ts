/** The session of a page. */
import { SessionError } from "./errors.ts";
import { authorizedFetch } from "./fetch.ts";
import { type AuthInterceptor, authInterceptor } from "./interceptor.ts";
import { onWake, type Realm, sleep, type WakeEvent } from "./realm.ts";
import { createRenewal, type Renewal } from "./renewal.ts";
import type { Outcome } from "./request.ts";
import { type Snapshot, UNKNOWN } from "./snapshot.ts";
import { leftMs } from "./token.ts";

/** Tabs that look because of one event spread over so long, ms. */
const DOUBT_SPREAD_MS = 500;

export type SessionOptions = {
  /** Where the service is. Default: the page's origin. */
  readonly baseUrl?: string;
  /** Other origins that `fetch` may send the access token to. Always included: the page's and the service's. */
  readonly origins?: readonly string[];
  /** How long a token that `accessToken` returns stays valid at the least, ms. Default: 10 s. */
  readonly minValidityMs?: number;
  /**
   * `SESSION_HINT_COOKIE` of the service: without that cookie nobody is signed in, and no request is made. The service sets it
   * with each refresh: name it here only when all sessions have been refreshed since.
   */
  readonly hintCookie?: string;
};

export type Session = {
  /**
   * A valid access token. However many calls, in however many tabs: one refresh.
   *
   * @throws SessionError `ended`, `unavailable` or `disposed`
   * @example
   * socket.send(JSON.stringify({ authorization: await session.accessToken() }));
   */
  accessToken(): Promise<string>;
  /**
   * `fetch` with the access token. A 401 leads to at most one refresh and one retry. A URL outside the page's origin, the
   * service's and `origins` is refused with a TypeError: it would receive the token.
   *
   * @throws SessionError, and what `fetch` throws
   * @example
   * const response = await session.fetch("/api/orders", { method: "POST", body });
   */
  fetch(input: string | URL | Request, init?: RequestInit): Promise<Response>;
  /**
   * The same for Connect transports, with the same origins. A stream is not started again.
   *
   * @example
   * createConnectTransport({ baseUrl: "/", interceptors: [session.interceptor] });
   */
  readonly interceptor: AuthInterceptor;
  /** What is known now. A new object after each change, so that it can be compared. */
  readonly snapshot: Snapshot;
  /**
   * Calls `listener` after each change of `snapshot`. The first subscription looks whether somebody is signed in.
   *
   * @returns what ends the subscription
   * @example
   * session.subscribe(() => {
   *   if (session.snapshot.state === "ended") location.assign("/login");
   * });
   */
  subscribe(listener: () => void): () => void;
  /**
   * After a sign-in or a step-up: looks again, in all tabs. Without `hintCookie`, every page that a login leads to calls it.
   *
   * @throws SessionError
   */
  begin(): Promise<void>;
  /**
   * Signs out, in all tabs.
   *
   * @throws SessionError `unavailable` when the service cannot be reached: the session then goes on
   * @example
   * signOutButton.onclick = () => session.end().catch(() => show("Still signed in. Try again."));
   */
  end(): Promise<void>;
  /** Leaves no timer, lock, channel, request or listener behind. Calls in progress reject with `disposed`. */
  dispose(): void;
};

/**
 * The session of this page. Make one and share it. Nothing happens until it is used; on a server it may be made, not used.
 *
 * @param realm the global object; tests bring their own
 * @example
 * export const session = createSession();
 * const orders = await session.fetch("/api/orders");
 */
export function createSession(options: SessionOptions = {}, realm: Realm = globalThis as unknown as Realm): Session {
  const { minValidityMs = 10_000, hintCookie } = options;
  const pageOrigin = realm.location?.origin;
  const baseUrl = (options.baseUrl ?? pageOrigin ?? "").replace(/\/$/, "");
  const disposal = new AbortController();
  const disposed = disposal.signal;
  let listeners: (() => void)[] = [];
  let renewal: Renewal | undefined;
  let planned = new AbortController();

  /** Opens what is needed, at the first use. */
  function use(): Renewal {
    if (disposed.aborted) throw new SessionError("disposed");
    if (!renewal) {
      renewal = createRenewal(realm, baseUrl, hintCookie, disposed, changed);
      onWake(realm, disposed, woken);
    }
    return renewal;
  }

  function changed(snapshotToo?: boolean): void {
    schedule();
    if (!snapshotToo) return;
    for (const listener of listeners) {
      // In a task of its own: no code of others runs under the lock. What it throws is an unhandled rejection.
      sleep(realm, 0, disposed).then(() => disposed.aborted || (listeners.includes(listener) && listener()));
    }
  }

  async function renew(replacement?: boolean): Promise<Outcome> {
    const outcome = await use().renew(replacement);
    schedule();
    return outcome;
  }

  /** Plans the next look; what was planned before is dropped. Hidden tabs wait until they are used or seen, or in doubt. */
  function schedule(): void {
    planned.abort();
    const current = renewal;
    if (!current || disposed.aborted) return;
    const { token, doubtful, snapshot } = current;
    const offline = snapshot.state === "offline";
    if (!token && !doubtful && !offline) return;
    planned = new AbortController();
    const { signal } = planned;
    let ownMs = 1;
    if (doubtful) ownMs += DOUBT_SPREAD_MS * realm.Math.random();
    else if (token && !offline) ownMs = token.dueMs - token.ageMs();
    sleep(realm, Math.max(ownMs, current.backoffMs()), signal).then(() => {
      if (!signal.aborted && (doubtful || realm.document?.visibilityState === "visible")) void renew();
    });
  }

  function woken({ type, persisted }: WakeEvent): void {
    const current = use();
    current.look(type === "online");
    // Messages of other tabs may have been missed: one of them, or the service, confirms the session.
    const overdue =
      realm.document?.visibilityState === "visible" && !current.isFresh() && current.snapshot.state !== "ended";
    if (type === "resume" || persisted || overdue) current.doubt();
    else schedule();
  }

  async function accessToken(): Promise<string> {
    let outcome: Outcome = {};
    // What another tab hands over may be too old already: then it is renewed once more.
    for (let attempt = 0; ; attempt++) {
      const current = use();
      const { token, snapshot } = current;
      if (snapshot.state === "ended") throw new SessionError("ended");
      // A token that never lives as long as is wanted is good for half of its life.
      if (token && leftMs(token) > (attempt < 2 ? Math.min(minValidityMs, token.lifeMs / 2) : 0)) {
        if (!current.isFresh()) void renew();
        return token.text;
      }
      if (attempt > 1) throw new SessionError("unavailable", outcome.cause);
      outcome = await renew();
    }
  }

  const source = {
    async tokenFor(url: string): Promise<string> {
      const originOf = (text: string) => new URL(text, pageOrigin).origin;
      const known = [pageOrigin, baseUrl, ...(options.origins ?? [])];
      if (known.some((one) => one && originOf(one) === originOf(url))) return accessToken();
      throw new TypeError(`no token: ${url}`);
    },
    async replace(text: string): Promise<string | undefined> {
      const held = use().token;
      // A token that replaced a refused one and is refused too: not the token is at fault.
      if (held?.text === text && !held.replacement) await renew(true);
      const other = use().token?.text;
      return other === text ? undefined : other;
    },
  };

  return {
    accessToken,
    fetch: authorizedFetch(source, realm),
    interceptor: authInterceptor(source),
    get snapshot() {
      return renewal?.snapshot ?? UNKNOWN;
    },
    subscribe(listener) {
      // The same function may come twice.
      const own = () => listener();
      if (!disposed.aborted) {
        listeners.push(own);
        if (use().snapshot.state === "unknown") accessToken().catch(() => {});
      }
      return () => {
        listeners = listeners.filter((other) => other !== own);
      };
    },
    async begin() {
      use().begin(true);
      await accessToken();
    },
    async end() {
      const outcome = await use().signOut();
      use();
      if (outcome.cause) throw new SessionError("unavailable", outcome.cause);
    },
    dispose() {
      disposal.abort();
      planned.abort();
    },
  };
}
