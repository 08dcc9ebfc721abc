/** The session of a page. */
import { SessionError } from "./errors.ts";
import { authorizedFetch } from "./fetch.ts";
import { type AuthInterceptor, authInterceptor } from "./interceptor.ts";
import { isVisible, onWake, type Realm, sleep, type WakeEvent } from "./realm.ts";
import { createRenewal, type Renewal } from "./renewal.ts";
import type { Outcome } from "./request.ts";
import { type Snapshot, UNKNOWN } from "./snapshot.ts";
import { leftMs } from "./token.ts";

/** After a wake all tabs would look at once: they spread over so long, ms. */
const WAKE_SPREAD_MS = 500;

/** Nobody waits for a refresh ahead of expiry: busy tabs have longer to hand over theirs, ms. */
const PATIENCE_MS = 500;

export type SessionOptions = {
  /** Where the service is. Default: the page's origin. */
  readonly baseUrl?: string;
  /** Other origins that `fetch` may send the access token to. Always included: the page's and the service's. */
  readonly origins?: readonly string[];
  /** How long a token that `accessToken` returns stays valid at the least, ms. Default: 10 s. */
  readonly minValidityMs?: number;
  /** `SESSION_HINT_COOKIE` of the service: without that cookie nobody is signed in, and no request is made. */
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
   * The same for Connect transports. A stream is not started again.
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
   * After a sign-in without a page load: looks again, in all tabs.
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
  const { origins = [], minValidityMs = 10_000, hintCookie } = options;
  const baseUrl = (options.baseUrl ?? realm.location?.origin ?? "").replace(/\/$/, "");
  const disposal = new AbortController();
  const disposed = disposal.signal;
  const listeners = new Set<() => void>();
  let renewal: Renewal | undefined;
  let planned = new AbortController();

  /** Opens what is needed, at the first use. */
  function use(): Renewal {
    if (disposed.aborted) throw new SessionError("disposed");
    if (!renewal) {
      renewal = createRenewal(realm, baseUrl, disposed, changed);
      onWake(realm, disposed, woken);
    }
    return renewal;
  }

  function changed(): void {
    schedule();
    for (const listener of [...listeners]) {
      try {
        listener();
      } catch (error) {
        // The listener's own fault: reported as an unhandled rejection, and the session goes on.
        void Promise.reject(error);
      }
    }
  }

  async function renew(replacement?: boolean, patienceMs?: number): Promise<Outcome> {
    const current = use();
    if (hintCookie && !`; ${realm.document?.cookie}`.includes(`; ${hintCookie}=`)) {
      current.end();
      return { ok: false };
    }
    const outcome = await current.renew(replacement, patienceMs);
    schedule();
    return outcome;
  }

  function failure(outcome: Outcome): SessionError {
    const reason = disposed.aborted ? "disposed" : renewal?.snapshot.state === "ended" ? "ended" : "unavailable";
    return new SessionError(reason, outcome.cause);
  }

  /** Runs one thing later; what was planned before is dropped. */
  function plan(delayMs: number, action: () => void): void {
    planned.abort();
    planned = new AbortController();
    const { signal } = planned;
    sleep(realm, delayMs, signal).then(() => signal.aborted || action());
  }

  /** Visible tabs refresh ahead of expiry; hidden ones wait until they are used or seen. */
  function schedule(): void {
    planned.abort();
    if (!renewal || disposed.aborted) return;
    const { token, snapshot } = renewal;
    if (!token && snapshot.state !== "offline") return;
    const dueMs = token ? token.dueMs - token.ageMs() : 0;
    plan(Math.max(dueMs, renewal.backoffMs(), 1), () => isVisible(realm) && void renew(false, PATIENCE_MS));
  }

  function woken({ type, persisted }: WakeEvent): void {
    const current = use();
    if (type === "online") current.retryNow();
    // Messages of other tabs may have been missed: one of them, or the service, confirms the session.
    const missed = type === "resume" || persisted;
    const { token, snapshot } = current;
    if (!missed && (snapshot.state === "ended" || (token && token.ageMs() < token.dueMs))) schedule();
    else {
      plan(WAKE_SPREAD_MS * realm.Math.random(), async () => {
        if (missed && token && (await current.askTabs())) schedule();
        else await renew();
      });
    }
  }

  async function accessToken(): Promise<string> {
    const current = use();
    if (current.snapshot.state === "ended") throw new SessionError("ended");
    const held = current.token;
    // A token that never lives as long as is wanted is good for half of its life.
    if (held && leftMs(held) > Math.min(minValidityMs, held.lifeMs / 2)) {
      if (held.ageMs() >= held.dueMs && current.backoffMs() < 0) void renew();
      return held.text;
    }
    const outcome = await renew();
    const { token } = current;
    if (!disposed.aborted && token && leftMs(token) > 0) return token.text;
    throw failure(outcome);
  }

  const source = {
    accessToken,
    async replace(text: string): Promise<string | undefined> {
      const current = use();
      const held = current.token;
      // A token that replaced a refused one and is refused too: not the token is at fault.
      if (held?.text === text && !held.replacement) await renew(true);
      const { token } = current;
      return token?.text === text ? undefined : token?.text;
    },
  };

  return {
    accessToken,
    fetch: authorizedFetch(source, realm, [baseUrl, ...origins]),
    interceptor: authInterceptor(source),
    get snapshot() {
      return renewal?.snapshot ?? UNKNOWN;
    },
    subscribe(listener) {
      const { snapshot } = use();
      listeners.add(listener);
      if (snapshot.state === "unknown") accessToken().catch(() => {});
      return () => void listeners.delete(listener);
    },
    async begin() {
      use().begin(true);
      await accessToken();
    },
    async end() {
      const outcome = await use().signOut();
      if ("cause" in outcome) throw failure(outcome);
    },
    dispose() {
      disposal.abort();
      planned.abort();
    },
  };
}
