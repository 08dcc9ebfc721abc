/**
 * Keeps the access token of a page and renews it: one request per token life in all tabs together.
 *
 * Only `E001_AUTH_FAILURE`, or another tab that received it, ends a session. Every other failure is "offline": the token
 * in hand is used while it is valid, and attempts back off.
 */
import { SessionError } from "./errors.ts";
import { bearer } from "./fetch.ts";
import { hintOf } from "./hint.ts";
import { BEGINNING, begin, doubt, end, fail, hearEnd, type Known, look as lookAt, receive, take } from "./machine.ts";
import { onWake, type Realm, sleep } from "./realm.ts";
import { type Outcome, send } from "./request.ts";
import type { Display } from "./snapshot.ts";
import { exclusively, messageOf, openChannel, type Receivers, type TabMessage, type TokenMessage } from "./tabs.ts";
import { agoMs, countdown, type HeldToken, holdToken, type ReceivedToken } from "./token.ts";
import { ASK_MS, MAX_PATIENCE_MS, maxBackoffMs, PATIENCE_MS, SPREAD_MS } from "./waits.ts";

/**
 * Creates the renewal. It is a closure rather than a class: minifiers shorten the names of its variables, and the kit must stay small.
 * @param hintCookie the name of the cookie that holds the id of the session
 * @param closed ends everything
 */
export function createRenewal(
  realm: Realm,
  baseUrl: string,
  hintCookie: string | undefined,
  closed: AbortSignal,
  display: Display,
  initial: ReceivedToken | undefined,
) {
  // The version is that of the messages: tabs of another version of the kit go their own way.
  const name = `session/1:${baseUrl}`;
  const open = (channelName: string) =>
    openChannel(realm, channelName, (message) => receivers[message?.type as "token"]?.(message as TokenMessage));
  let channel = open(name);
  let known = BEGINNING;
  /** Aborted when waiting has no purpose any more: also when another tab has failed. */
  let waiters = new AbortController();
  let inFlight: Promise<Outcome | undefined> | undefined;
  /** Until the next attempt is allowed, ms. */
  let backoffMs = countdown(realm, 0);
  let timer: unknown;
  closed.addEventListener("abort", () => {
    channel = channel?.close() as undefined;
    settle(0);
    plan();
  });
  onWake(realm, closed, ({ type, persisted }) => {
    // What was put off may be tried at once.
    if (type === "online") backoffMs = countdown(realm, 0);
    look();
    // Messages may have been missed. The cookie would show what they said.
    if ((type === "resume" || persisted) && !hint()) learn(doubt(known));
    plan();
  });

  const unavailable = (cause: unknown) => new SessionError(closed.aborted ? "disposed" : "unavailable", cause);
  const hint = () => hintOf(realm, hintCookie);
  const say = (message: TabMessage) => channel?.postMessage(message);
  /** Until the token in hand is to be refreshed, ms. */
  const dueMs = () => (known.token ? known.token.leftMs() - known.token.reserveMs : 0);

  /** Gives an outcome to all that wait for their turn. Otherwise each would try in its turn. */
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

  /** Plans the next look; what was planned before is dropped. Hidden tabs wait until they are used or seen, or in doubt. */
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

  /** The session is over, here and in the other tabs. */
  function over(): void {
    learn(end(known));
    say({ type: "ended", sid: known.endedSid });
  }

  /** Takes note of what other pages may have changed. Returns whether nobody is signed in. */
  function look(): boolean {
    const nobody = hint() === "";
    if (nobody) over();
    else learn(lookAt(known, hint()));
    return nobody;
  }

  const receivers: Receivers & { readonly __proto__: null } = {
    // Any page of the origin may send a message of any type.
    __proto__: null,
    ask({ newerThan, replyTo }) {
      const { token } = known;
      if (!token?.text || token.claims.iat <= newerThan || dueMs() <= 0 || known.doubtful) return;
      // A channel of its own: a reply to everybody would be as many messages as there are tabs, squared.
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

  async function request(replacement: boolean | undefined): Promise<Outcome | undefined> {
    const { version } = known;
    const atMs = realm.Date.now();
    const outcome = await send(realm, `${baseUrl}/v1/auth/refresh`, closed);
    // Meanwhile another tab has brought a token, the session has ended or another one has begun: that is newer.
    if (version !== known.version) return undefined;
    const received = holdToken({ text: outcome.accessToken, atMs, replacement }, realm);
    if (received) {
      learn(receive(known, received));
      if (known.token === received) say(messageOf(received, realm));
    } else if (outcome.ended) over();
    else {
      // A random part is added to the time that the service names, so that clients do not come back all at once.
      const waitMs = maxBackoffMs(known.failures) * realm.Math.random() + (outcome.retryAfterMs ?? 0);
      learn(fail(known, waitMs));
      say({ type: "failed", waitMs, atMs: realm.Date.now() });
    }
    return outcome;
  }

  /** Obtains a token. Single flight; never rejects. @param replacement whether a service has refused the token in hand */
  async function renew(replacement?: boolean): Promise<Outcome | undefined> {
    if (look() || backoffMs() > 0) return undefined;
    const { signal } = waiters;
    const sinceMs = countdown(realm, 0);
    inFlight ??= exclusively(realm, name, signal, async () => {
      const { token, doubtful } = known;
      const replyTo = name + realm.Math.random();
      const box = open(replyTo);
      // In doubt the token in hand is good enough, if another tab has no doubt of it.
      say({ type: "ask", newerThan: doubtful || !token?.text ? 0 : token.claims.iat, replyTo });
      // If a lock takes long, the two messages of a reply do too, and so does what the tab with the lock before us obtained.
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
    /** @param minValidityMs how long the token is valid at the least */
    async accessToken(minValidityMs: number): Promise<string> {
      let outcome: Outcome | undefined;
      // What another tab hands over may be too old already: then it is renewed once more.
      for (let attempt = 0; ; attempt++) {
        if (known.state === "ended") throw new SessionError("ended");
        // A page or a sign-in elsewhere may have changed the cookies since the last look.
        if (known.token) look();
        const { token } = known;
        // A token that never lives as long as is wanted is good for half of its life.
        if (token?.text && token.leftMs() > (attempt < 2 ? Math.min(minValidityMs, token.lifeMs / 2) : 0)) {
          if (dueMs() <= 0) void renew();
          return token.text;
        }
        if (attempt > 1) throw unavailable(outcome?.cause);
        outcome = await renew();
      }
    },
    /** Another token than `text`, which a service has refused, if there is one. */
    async replace(text: string): Promise<string | undefined> {
      // This token replaced a refused one, and is refused too. Then the token is not at fault.
      if (known.token?.text === text && !known.token.replacement) await renew(true);
      return known.token?.text === text ? undefined : known.token?.text;
    },
    begin(): void {
      say({ type: "began" });
      learn(begin(known));
    },
    async signOut(): Promise<void> {
      const { version, token } = known;
      const url = `${baseUrl}/v1/auth/logout`;
      let outcome = await send(realm, url, closed);
      // The cookie is gone, the session need not be.
      if (outcome.ended && token?.text)
        outcome = await send(realm, url, closed, "DELETE", { authorization: bearer(token.text) });
      if (outcome.cause) throw unavailable(outcome.cause);
      if (version === known.version) over();
      // Somebody may have signed in meanwhile: the service knows which session there is now, if any.
      else learn(begin(known));
    },
  };
}
