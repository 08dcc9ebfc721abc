/**
 * Keeps the access token of a page and renews it: one request per token life in all tabs together.
 *
 * Only `E001_AUTH_FAILURE`, or another tab that received it, ends a session. Every other failure is "offline": the token
 * in hand is used while it is valid, and attempts back off.
 */
import { SessionError } from "./errors.ts";
import { bearer } from "./fetch.ts";
import { hintOf } from "./hint.ts";
import { onWake, type Realm, sleep } from "./realm.ts";
import { type Outcome, send } from "./request.ts";
import type { Display, SessionState } from "./snapshot.ts";
import { exclusively, messageOf, openChannel, type Receivers, type TokenMessage } from "./tabs.ts";
import { agoMs, countdown, type HeldToken, holdToken, type ReceivedToken } from "./token.ts";
import { ASK_MS, MAX_PATIENCE_MS, MAX_RETRY_AFTER_MS, maxBackoffMs, PATIENCE_MS, SPREAD_MS } from "./waits.ts";

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
  let token: HeldToken | undefined;
  /** Counts tokens, endings and beginnings: each makes what is under way void. */
  let version = 0;
  /** Aborted when waiting has no purpose any more: also when another tab has failed. */
  let waiters = new AbortController();
  /** The session that was seen to end. Its tokens are not taken from other tabs any more. */
  let endedSid: string | undefined;
  let inFlight: Promise<Outcome | undefined> | undefined;
  let failures = 0;
  /** Until the next attempt is allowed, ms. */
  let backoffMs = countdown(realm, 0);
  /** Whether this tab looks soon, hidden or not, and again until it is known what has become of the session. */
  let doubtful = false;
  let timer: unknown;
  closed.addEventListener("abort", () => {
    channel = channel?.close() as undefined;
    settle(0, 0);
    plan();
  });
  onWake(realm, closed, ({ type, persisted }) => {
    // What was put off may be tried at once.
    if (type === "online") backoffMs = countdown(realm, 0);
    look();
    // Messages may have been missed. The cookie would show what they said.
    if ((type === "resume" || persisted) && !hint()) doubtful = true;
    plan();
  });

  const unavailable = (cause: unknown) => new SessionError(closed.aborted ? "disposed" : "unavailable", cause);
  /** Until the token in hand is to be refreshed, ms. */
  const dueMs = () => (token ? token.leftMs() - token.reserveMs : 0);

  function show(state: SessionState): void {
    display.show(state, token?.claims);
    plan();
  }

  /** Plans the next look; what was planned before is dropped. Hidden tabs wait until they are used or seen, or in doubt. */
  function plan(): void {
    realm.clearTimeout(timer as never);
    if (closed.aborted || !realm.document || (display.snapshot.state === "ended" && !doubtful)) return;
    const ownMs = doubtful || display.snapshot.state === "offline" ? 0 : dueMs();
    timer = realm.setTimeout(
      () => {
        if (doubtful || realm.document?.visibilityState === "visible") void renew().then(plan);
      },
      Math.max(0, ownMs, backoffMs()) + SPREAD_MS * realm.Math.random(),
    );
  }

  /** Gives an outcome to all that wait for their turn. Otherwise each would try in its turn. */
  function settle(failureCount: number, waitMs: number): void {
    failures = failureCount;
    backoffMs = countdown(realm, waitMs);
    waiters.abort();
    waiters = new AbortController();
  }

  /** @param state `unknown` when somebody has signed in: whatever was known before is void */
  function become(state: SessionState, newToken?: HeldToken, ended?: string): void {
    version++;
    settle(0, 0);
    token = newToken;
    endedSid = ended;
    // The tab that announced a sign-in may be gone before it has a token.
    doubtful = state === "unknown";
    show(state);
  }

  function fail(waitMs: number): void {
    settle(failures + 1, Math.min(waitMs, MAX_RETRY_AFTER_MS));
    if (display.snapshot.state !== "ended") show("offline");
  }

  /** The session is over, here and in the other tabs. */
  function end(): void {
    const sid = token?.claims.sid ?? endedSid;
    channel?.postMessage({ type: "ended", sid });
    become("ended", undefined, sid);
  }

  const hint = () => hintOf(realm, hintCookie);

  /** Whether a session is over, or the hint names another one. */
  const isVoid = (sid: string | undefined) => (hint() ?? sid) !== sid || (sid && sid === endedSid);

  /** Takes note of what other pages may have changed. Returns whether nobody is signed in. */
  function look(): boolean {
    const nobody = hint() === "";
    if (nobody) end();
    else if (token && isVoid(token.claims.sid)) become("unknown");
    return nobody;
  }

  const receivers: Receivers & { readonly __proto__: null } = {
    // Any page of the origin may send a message of any type.
    __proto__: null,
    ask({ newerThan, replyTo }) {
      if (!token?.text || token.claims.iat <= newerThan || dueMs() <= 0 || doubtful) return;
      // A channel of its own: a reply to everybody would be as many messages as there are tabs, squared.
      const box = open(replyTo);
      box?.postMessage(messageOf(token, realm));
      box?.close();
    },
    began: () => become("unknown"),
    failed({ waitMs, atMs }) {
      const ms = waitMs - agoMs(realm, atMs);
      if (ms > 0 && dueMs() <= 0) fail(ms);
    },
    /** Another tab's token is taken unless it is worse than ours. */
    token(message) {
      const other = holdToken(message, realm);
      const isLive = other && other.leftMs() > 0 && !isVoid(other.claims.sid);
      if (isLive && (token?.claims.sid !== other.claims.sid || other.claims.iat >= (token as HeldToken).claims.iat)) {
        become("active", other);
      }
    },
    ended({ sid }) {
      if (!token) endedSid = sid ?? endedSid;
      else if (!sid) {
        doubtful = true;
        plan();
      } else if (token.claims.sid === sid) become("ended", undefined, sid);
    },
  };

  async function request(replacement: boolean | undefined): Promise<Outcome | undefined> {
    const started = version;
    const atMs = realm.Date.now();
    const outcome = await send(realm, `${baseUrl}/v1/auth/refresh`, closed);
    // Meanwhile another tab has brought a token, the session has ended or another one has begun: that is newer.
    if (started !== version) return undefined;
    const received = holdToken({ text: outcome.accessToken, atMs, replacement }, realm);
    if (endedSid && received?.claims.sid === endedSid) {
      // It was reported as over while the response was on its way: the service is asked once more.
      endedSid = undefined;
    } else if (received) {
      channel?.postMessage(messageOf(received, realm));
      become("active", received);
    } else if (outcome.ended) end();
    else {
      // Never the same for all clients, also where the service names a time.
      const waitMs = maxBackoffMs(failures) * realm.Math.random() + (outcome.retryAfterMs ?? 0);
      fail(waitMs);
      channel?.postMessage({ type: "failed", waitMs, atMs: realm.Date.now() });
    }
    return outcome;
  }

  /** Obtains a token. Single flight; never rejects. @param replacement whether a service has refused the token in hand */
  async function renew(replacement?: boolean): Promise<Outcome | undefined> {
    if (look() || backoffMs() > 0) return undefined;
    const { signal } = waiters;
    const sinceMs = countdown(realm, 0);
    inFlight ??= exclusively(realm, name, signal, async () => {
      const replyTo = name + realm.Math.random();
      const box = open(replyTo);
      // In doubt the token in hand is good enough, if another tab has no doubt of it.
      channel?.postMessage({ type: "ask", newerThan: doubtful || !token?.text ? 0 : token.claims.iat, replyTo });
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

  if (initial) become("active", holdToken(initial, realm));
  look();
  return {
    /** @param minValidityMs how long the token is valid at the least */
    async accessToken(minValidityMs: number): Promise<string> {
      let outcome: Outcome | undefined;
      // What another tab hands over may be too old already: then it is renewed once more.
      for (let attempt = 0; ; attempt++) {
        if (display.snapshot.state === "ended") throw new SessionError("ended");
        // A page or a sign-in elsewhere may have changed the cookies since the last look.
        if (token) look();
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
      if (token?.text === text && !token.replacement) await renew(true);
      return token?.text === text ? undefined : token?.text;
    },
    begin(): void {
      channel?.postMessage({ type: "began" });
      become("unknown");
    },
    async signOut(): Promise<void> {
      const started = version;
      const held = token;
      const url = `${baseUrl}/v1/auth/logout`;
      let outcome = await send(realm, url, closed);
      // The cookie is gone, the session need not be.
      if (outcome.ended && held?.text)
        outcome = await send(realm, url, closed, "DELETE", { authorization: bearer(held.text) });
      if (outcome.cause) throw unavailable(outcome.cause);
      if (started === version) end();
      // Somebody may have signed in meanwhile: the service knows which session there is now, if any.
      else become("unknown");
    },
  };
}
