/**
 * Keeps the access token of a page and renews it: one request per token life in all tabs together. While the service cannot be reached, the
 * token is used as long as it is valid, and attempts back off.
 */
import { bearer } from "./authorized-calls.ts";
import { SessionError } from "./errors.ts";
import { BEGINNING, begin, doubt, end, fail, hearEnd, type Known, look as lookAt, receive, take } from "./machine.ts";
import { hintOf, onWake, type Realm, sleep, warn } from "./realm.ts";
import { type Outcome, send } from "./request.ts";
import type { Display } from "./snapshot.ts";
import { exclusively, messageOf, openChannel, type Receivers, type TabMessage, type TokenMessage } from "./tabs.ts";
import { agoMs, countdown, type HeldToken, holdToken, type ReceivedToken } from "./token.ts";
import { ASK_MS, MAX_PATIENCE_MS, maxBackoffMs, PATIENCE_MS, SPREAD_MS } from "./waits.ts";

/**
 * Creates the renewal. It is a closure rather than a class: minifiers shorten the names of its variables, and the kit must stay small.
 * @param hintCookie the name of the cookie that holds the id of the session
 * @param closed ends the renewal
 */
export function createRenewal(
  realm: Realm,
  baseUrl: string,
  hintCookie: string | undefined,
  closed: AbortSignal,
  display: Display,
  initial: ReceivedToken | undefined,
) {
  // The name contains the version of the messages, so that tabs with another version of the kit use another channel.
  const name = `session/1:${baseUrl}`;
  const open = (channelName: string) =>
    openChannel(realm, channelName, (message) => receivers[message?.type as "token"]?.(message as TokenMessage));
  let channel = open(name);
  let known = BEGINNING;
  /** Ends all waits. It is aborted when waiting has no purpose any more, for example when another tab has failed. */
  let waiters = new AbortController();
  let inFlight: Promise<Outcome | undefined> | undefined;
  /** Returns the time until the next attempt is allowed, in ms. */
  let backoffMs = countdown(realm, 0);
  let timer: unknown;
  closed.addEventListener("abort", () => {
    channel = channel?.close() as undefined;
    settle(0);
    plan();
  });
  onWake(realm, closed, ({ type, persisted }) => {
    // Back online, the next attempt need not wait any longer.
    if (type === "online") backoffMs = countdown(realm, 0);
    look();
    // This tab may have missed messages of other tabs while it was frozen. If it can read the hint cookie, that shows the session anyway.
    if ((type === "resume" || persisted) && !hint()) learn(doubt(known));
    plan();
  });

  const unavailable = (cause: unknown) => new SessionError(closed.aborted ? "disposed" : "unavailable", cause);
  const hint = () => hintOf(realm, hintCookie);
  const say = (message: TabMessage) => channel?.postMessage(message);
  /** Returns the time until the current token must be refreshed, in ms. */
  const dueMs = () => (known.token ? known.token.leftMs() - known.token.reserveMs : 0);

  /** Ends the waits of all calls that want to send a request, so that they use the outcome of the request that has just ended. */
  function settle(waitMs: number): void {
    backoffMs = countdown(realm, waitMs);
    waiters.abort();
    waiters = new AbortController();
  }

  function learn(then: Known): void {
    if (then === known) return;
    if (then.version !== known.version || then.failures !== known.failures) settle(then.waitMs);
    known = then;
    display.show(known.state, known.token?.claims);
    plan();
  }

  /** Plans the next check, instead of any planned before. Hidden tabs check only if they are used, become visible, or doubt their state. */
  function plan(): void {
    const { state, doubtful } = known;
    realm.clearTimeout(timer as never);
    if (closed.aborted || !realm.document || (state === "ended" && !doubtful)) return;
    const ownMs = doubtful || state === "offline" ? 0 : dueMs();
    timer = realm.setTimeout(
      () => {
        if (known.doubtful || realm.document?.visibilityState === "visible") void renew().then(plan);
      },
      Math.max(0, ownMs, backoffMs()) + SPREAD_MS * realm.Math.random(),
    );
  }

  /** Ends the session, here and in the other tabs. */
  function over(): void {
    learn(end(known));
    say({ type: "ended", sid: known.endedSid });
  }

  /** Reads the hint cookie, which other pages may have changed. Returns whether nobody is signed in. */
  function look(): boolean {
    const nobody = hint() === "";
    if (nobody) {
      // In production, which uses https, this is every visitor who is not signed in.
      if (baseUrl[4] === ":") warn(realm, `no cookie ${hintCookie}`);
      over();
    } else learn(lookAt(known, hint()));
    return nobody;
  }

  const receivers: Receivers & { readonly __proto__: null } = {
    // The object has no prototype, because any page of the origin may send a message with any type, such as `constructor`.
    __proto__: null,
    ask({ newerThan, replyTo }) {
      const { token } = known;
      if (!token?.text || token.claims.iat <= newerThan || dueMs() <= 0 || known.doubtful) return;
      // The reply goes to the asking tab alone. If it went to all tabs, the number of messages would be the square of the number of tabs.
      const box = open(replyTo);
      box?.postMessage(messageOf(token, realm));
      box?.close();
    },
    began: () => learn(begin(known)),
    failed({ waitMs, atMs }) {
      const ms = waitMs - agoMs(realm, atMs);
      if (ms > 0 && dueMs() <= 0) learn(fail(known, ms));
    },
    token(message) {
      const other = holdToken(message, realm);
      if (other && other.leftMs() > 0) learn(take(known, other, hint()));
    },
    ended: ({ sid }) => learn(hearEnd(known, sid)),
  };

  async function request(replacement: number | undefined): Promise<Outcome | undefined> {
    const { version } = known;
    const atMs = realm.Date.now();
    const outcome = await send(realm, `${baseUrl}/v1/auth/refresh`, closed);
    // The session has changed during the request, for example by a message of another tab, so the response is outdated.
    if (version !== known.version) return undefined;
    const received = holdToken({ text: outcome.accessToken, atMs, replacement }, realm);
    if (received) {
      learn(receive(known, received));
      if (known.token === received) say(messageOf(received, realm));
    } else if (outcome.ended) {
      if (realm.isSecureContext === false) warn(realm, "http drops Secure cookies");
      over();
    } else {
      // A random time is added to the time that the service requires, so that clients do not come back all at once.
      const waitMs = maxBackoffMs(known.failures) * realm.Math.random() + (outcome.retryAfterMs ?? 0);
      learn(fail(known, waitMs));
      say({ type: "failed", waitMs, atMs: realm.Date.now() });
    }
    return outcome;
  }

  /** Obtains a token. Concurrent calls share one request. It never rejects. @param replacement the version of a token that a service refused */
  async function renew(replacement?: number): Promise<Outcome | undefined> {
    if (look() || backoffMs() > 0) return undefined;
    const { signal } = waiters;
    const sinceMs = countdown(realm, 0);
    inFlight ??= exclusively(realm, name, signal, async () => {
      const { token, doubtful } = known;
      const replyTo = name + realm.Math.random();
      const box = open(replyTo);
      // A tab whose state is in doubt asks for any token: even its own token confirms the state, if a tab that is not in doubt sends it.
      say({ type: "ask", newerThan: doubtful || !token?.text ? 0 : token.claims.iat, replyTo });
      // If the lock took long to get, messages between tabs take long as well. So the wait for a reply is extended by twice that time.
      const patienceMs = (token && token.leftMs() > 0 ? PATIENCE_MS : ASK_MS) - 2 * sinceMs();
      await sleep(realm, Math.min(MAX_PATIENCE_MS, patienceMs), signal);
      box?.close();
      return signal.aborted ? undefined : request(replacement);
    }).finally(() => {
      inFlight = undefined;
    });
    return inFlight;
  }

  if (initial) learn(receive(known, holdToken(initial, realm) as HeldToken));
  look();
  return {
    /** @param minValidityMs how long the token must be valid at least */
    async accessToken(minValidityMs: number): Promise<string> {
      let outcome: Outcome | undefined;
      // The token of another tab may be too old already. It is then renewed once more.
      for (let attempt = 0; ; attempt++) {
        if (known.state === "ended") throw new SessionError("ended");
        // Another page, or a sign-in on another page, may have changed the cookies since the last check.
        if (known.token) look();
        const { token } = known;
        // If tokens never live as long as requested, one is accepted for half of its life.
        if (token?.text && token.leftMs() > (attempt < 2 ? Math.min(minValidityMs, token.lifeMs / 2) : 0)) {
          if (dueMs() <= 0) void renew();
          return token.text;
        }
        if (attempt > 1) throw unavailable(outcome?.cause);
        outcome = await renew();
      }
    },
    /** Returns another token than `text`, which a service has refused, if it can get one. */
    async replace(text: string): Promise<string | undefined> {
      const version = known.token?.claims.sv ?? 0;
      // If the refused token was itself a replacement of a refused token, and the session has not changed in between, the token is not the
      // cause, and a further one would not help.
      if (known.token?.text === text && known.token.replacement !== version) await renew(version);
      return known.token?.text === text ? undefined : known.token?.text;
    },
    /** @param received the session after a sign-in, if a server has rendered it */
    begin(received?: ReceivedToken): void {
      const token = received && holdToken(received, realm);
      if (token && token.claims.sid === known.token?.claims.sid) return;
      say({ type: "began" });
      learn(token ? receive(begin(known), token) : begin(known));
    },
    async signOut(): Promise<void> {
      const { version, token } = known;
      const url = `${baseUrl}/v1/auth/logout`;
      let outcome = await send(realm, url, closed);
      // The service found no session by the cookie, but the session of the access token may still exist, so that one is ended as well.
      if (outcome.ended && token?.text)
        outcome = await send(realm, url, closed, "DELETE", { authorization: bearer(token.text) });
      if (outcome.cause) throw unavailable(outcome.cause);
      if (version === known.version) over();
      // Another user may have signed in during the requests. Only the service knows whether there is a session now.
      else learn(begin(known));
    },
  };
}
