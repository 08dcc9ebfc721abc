/**
 * Keeps the access token of a page and renews it: one request per token life in all tabs together. While the service cannot be reached, the
 * token is used as long as it is valid, and attempts back off.
 */
import { SessionError } from "./errors.ts";
import { BEGINNING, begin, doubt, dueMs, end, fail, type Known, lastSid, look as lookAt, receive } from "./machine.ts";
import { type AskMessage, hear, messageOf, type TabMessage } from "./messages.ts";
import { type ChannelLike, hintOf, onWake, type Realm, sleep, warn } from "./realm.ts";
import { type Outcome, send } from "./request.ts";
import type { Display } from "./snapshot.ts";
import { exclusively, openChannel } from "./tabs.ts";
import { type Claims, countdown, type HeldToken, holdToken } from "./token.ts";
import { ASK_MS, MAX_PATIENCE_MS, maxBackoffMs, PATIENCE_MS, SPREAD_MS } from "./waits.ts";

/**
 * Creates the renewal. It is a closure rather than a class: minifiers shorten the names of its variables, and the kit must stay small.
 * The order of its functions is: what this tab knows, its talk with other tabs, its checks, a renewal, and the calls of the application.
 * @param hintCookie the name of the cookie that holds the id of the session
 * @param closed ends the renewal
 */
export function createRenewal(
  realm: Realm,
  baseUrl: string,
  hintCookie: string | undefined,
  closed: AbortSignal,
  display: Display,
  initial: HeldToken | undefined,
) {
  // The name contains the version of the messages, so that tabs with another version of the kit use another channel. The URL in it is as
  // `fetch` resolves it, so that tabs which spell it differently share their locks and channels.
  const name = `session/1:${new Request(`${baseUrl}/`).url.replace(/\/$/, "")}`;
  const hint = () => hintOf(realm, hintCookie);
  const open = (channelName: string) =>
    openChannel(realm, channelName, (message) =>
      message?.type === "ask" ? reply(message) : learn(hear(known, message, realm, hint())),
    );
  const say = (message: TabMessage) => channel?.postMessage(message);
  const call = (path: string, token?: string) => send(realm, `${baseUrl}/v1/auth/${path}`, closed, token);
  const unavailable = (cause?: unknown) => new SessionError(closed.aborted ? "disposed" : "unavailable", cause);

  let known = BEGINNING;
  let channel = open(name);
  /** Ends all waits. It is aborted when waiting has no purpose any more, for example when another tab has failed. */
  let waiters = new AbortController();
  /** Returns the time until the next attempt is allowed, in ms. */
  let backoffMs = countdown(realm, 0);
  let timer: unknown;
  /** What the hint cookie contained when this tab looked at it last. */
  let lookedAt: string | undefined;
  /** The claims of this tab's token, or of the last one that it had; none before the first. */
  let last = {} as Claims;
  let inFlight: Promise<Outcome | undefined> | undefined;

  /** Takes over what this tab knows after a step of the machine. */
  function learn(then: Known): void {
    if (then === known) return;
    if (then.version !== known.version || then.failures !== known.failures) settle(then.waitMs);
    known = then;
    last = known.token?.claims ?? last;
    display.show(known.state, known.token?.claims);
    plan();
  }

  /** Ends the waits of all calls that want to send a request, so that they use the outcome of the request that has just ended. */
  function settle(waitMs: number): void {
    waiters.abort();
    waiters = new AbortController();
    backoffMs = countdown(realm, waitMs);
  }

  /** Ends the session, here and in the other tabs. */
  function over(): void {
    learn(end(known));
    say({ type: "ended", sid: known.endedSid });
  }

  /** Sends the token to a tab that asks for it, if this tab does not want another one itself. */
  function reply({ newerThan, replyTo }: AskMessage): void {
    const { token, doubtful } = known;
    if (!token?.text || token.claims.iat <= newerThan || dueMs(known) <= 0 || doubtful) return;
    // The reply goes to the asking tab alone. If it went to all tabs, the number of messages would be the square of the number of tabs.
    const box = open(replyTo) as ChannelLike;
    box.postMessage(messageOf(token, realm));
    box.close();
  }

  /** Reads the hint cookie, which other pages may have changed. Returns whether nobody is signed in. */
  function look(): boolean {
    const former = lookedAt;
    lookedAt = hint();
    const nobody = lookedAt === "";
    if (nobody) {
      // In production, which uses https, this is every visitor who is not signed in.
      if (baseUrl[4] === ":") warn(realm, `no cookie ${hintCookie}`);
      over();
    } else learn(lookAt(known, lookedAt, former));
    return nobody;
  }

  /** Plans the next check, instead of any planned before. Hidden tabs check only if they are used, become visible, or doubt their state. */
  function plan(): void {
    const { document } = realm;
    const { state, doubtful } = known;
    realm.clearTimeout(timer as never);
    if (closed.aborted || !document || (state === "ended" && !doubtful)) return;
    const ownMs = doubtful || state === "offline" ? 0 : dueMs(known);
    timer = realm.setTimeout(
      () => {
        if (doubtful || document.visibilityState === "visible") void renew().then(plan);
      },
      Math.max(0, ownMs, backoffMs()) + SPREAD_MS * realm.Math.random(),
    );
  }

  /** Obtains a token. Concurrent calls share one request. It never rejects. @param replacement the version of a token that was refused */
  async function renew(replacement?: number): Promise<Outcome | undefined> {
    if (look() || backoffMs() > 0) return undefined;
    const { signal } = waiters;
    const leftMs = countdown(realm, 0);
    inFlight ??= exclusively(realm, name, signal, async () => {
      await ask(-leftMs(), signal);
      return signal.aborted ? undefined : request(replacement);
    }).finally(() => {
      inFlight = undefined;
    });
    return inFlight;
  }

  /** Asks the other tabs for a token, whose arrival aborts `signal`. @param waitedMs how long this tab has waited for the lock */
  async function ask(waitedMs: number, signal: AbortSignal): Promise<void> {
    const { token, doubtful } = known;
    const replyTo = name + realm.Math.random();
    const box = open(replyTo);
    // A tab whose state is in doubt asks for any token: even its own token confirms the state, if a tab that is not in doubt sends it.
    say({ type: "ask", newerThan: doubtful || !token?.text ? 0 : token.claims.iat, replyTo });
    // If the lock took long to get, messages between tabs take long as well. So the wait for a reply is extended by twice that time.
    const patienceMs = (token && token.leftMs() > 0 ? PATIENCE_MS : ASK_MS) + 2 * waitedMs;
    await sleep(realm, Math.min(MAX_PATIENCE_MS, patienceMs), signal);
    box?.close();
  }

  /** Asks the service for a token. */
  async function request(replacement?: number): Promise<Outcome | undefined> {
    const { version } = known;
    const atMs = realm.Date.now();
    const outcome = await call("refresh");
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

  closed.addEventListener("abort", () => {
    channel = channel?.close() as undefined;
    // No call in progress may begin another attempt.
    settle(Number.POSITIVE_INFINITY);
    plan();
  });
  onWake(realm, closed, ({ type, persisted }) => {
    // Back online, the next attempt need not wait any longer.
    if (type === "online") backoffMs = countdown(realm, 0);
    look();
    // This tab may have missed messages of other tabs while it was frozen. If it can read the hint cookie, that shows the session anyway.
    if ((type === "resume" || persisted) && !lookedAt) learn(doubt(known));
    plan();
  });
  if (initial) learn(receive(known, initial));
  look();
  return {
    /** @param minValidityMs how long the token must be valid at least */
    async accessToken(minValidityMs: number): Promise<string> {
      let outcome: Outcome | undefined;
      // The token of another tab may be too old already. It is then renewed once more.
      for (let attempt = 0; ; attempt++) {
        // Another page, or a sign-in on another page, may have changed the cookies since the last check.
        if (known.state === "ended" || look()) throw new SessionError("ended");
        const { token } = known;
        // If tokens never live as long as requested, one is accepted for half of its life.
        if (token?.text && token.leftMs() > (attempt < 2 ? Math.min(minValidityMs, token.lifeMs / 2) : 0)) {
          if (dueMs(known) <= 0) void renew();
          return token.text;
        }
        if (attempt > 1) throw unavailable(outcome?.cause);
        outcome = (await renew()) ?? outcome;
      }
    },
    /** Returns another token than `text`, which a service has refused, if it can get one. */
    async replace(text: string): Promise<string | undefined> {
      const { token } = known;
      const version = token?.claims.sv ?? 0;
      // If the refused token was itself a replacement of a refused token, and the session has not changed in between, the token is not the
      // cause, and a further one would not help.
      if (token?.text === text && token.replacement !== version) await renew(version);
      const other = known.token?.text;
      if (other !== text) return other;
      return undefined;
    },
    /** @param token of the session after a sign-in, if a server has rendered it */
    begin(token?: HeldToken): void {
      if (token && token.claims.sid === lastSid(known)) return;
      // A framework may show a page again from its cache, which a server rendered for a former user. But the clocks of instances of the
      // service differ, so it may also be a sign-in, which only the service knows.
      if (token && token.claims.iat < last.iat) learn(doubt(known));
      else {
        learn(token ? receive(begin(known), token) : begin(known));
        say({ type: "began" });
      }
    },
    async signOut(): Promise<void> {
      const { version, token } = known;
      // The session is named, because the cookie may be of a later sign-in by now, which this tab has not noticed. A tab that still waits
      // for a token does not know which session it will be of.
      const path = `logout?session_id=${((token || known.state === "ended") && last.sid) || ""}`;
      let outcome = await call(path);
      // The service found no such session by the cookie, but the session of the access token may still exist, so that one is ended as well.
      // Without a token, the browser may have had cookies of two users. The response has removed one, so the request is repeated.
      if (outcome.ended) outcome = await call(path, token?.text);
      if (outcome.cause) throw unavailable(outcome.cause);
      if (outcome.ended && token) {
        // The session is over, but somebody may be signed in. The service alone knows: other tabs may have a token of the session. This tab
        // keeps its own meanwhile, so that a repeated sign-out names the same session if there is no response.
        await request();
        if (known.state !== "ended" && last.sub === token.claims.sub) throw unavailable();
      } else if (version === known.version) over();
      else learn(begin(known));
    },
  };
}
