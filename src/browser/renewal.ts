/**
 * Keeps the access token of a page and renews it: one request per token life in all tabs together.
 *
 * Only `E001_AUTH_FAILURE`, or another tab that received it, ends a session. Every other failure is "offline": the token
 * in hand is used while it is valid, and attempts back off.
 */
import { hintOf } from "./hint.ts";
import { type Realm, sleep } from "./realm.ts";
import { type Outcome, post, waitAfter } from "./request.ts";
import { type SessionState, UNKNOWN } from "./snapshot.ts";
import { agoMs, exclusively, messageOf, openChannel, type TabMessage, type TokenMessage } from "./tabs.ts";
import { type HeldToken, holdToken, leftMs, stopwatch } from "./token.ts";
import { ASK_MS, MAX_PATIENCE_MS, PATIENCE_MS } from "./waits.ts";

export type Renewal = ReturnType<typeof createRenewal>;

/**
 * A closure rather than a class: minifiers shorten the names of its variables, and the kit has a size to keep.
 *
 * @param hintCookie the name of the cookie that holds the id of the session
 * @param closed ends everything
 * @param changed called after each change: of the snapshot, or of the next look only
 */
export function createRenewal(
  realm: Realm,
  baseUrl: string,
  hintCookie: string | undefined,
  closed: AbortSignal,
  changed: (snapshotToo?: boolean) => void,
) {
  // With the version of the messages: tabs of another version of the kit go their own way.
  const name = `session/1:${baseUrl}`;
  const open = (channelName: string) =>
    openChannel(realm, channelName, (message) => receivers[message?.type as "token"]?.(message as TokenMessage));
  const channel = open(name);
  let snapshot = UNKNOWN;
  let token: HeldToken | undefined;
  /** Counts tokens, endings and beginnings: each makes what is under way void. */
  let era = 0;
  /** Aborted when waiting has no purpose any more: also when another tab has failed. */
  let epoch = new AbortController();
  /** The session that was seen to end. Its tokens are not taken from other tabs any more. */
  let endedSid: string | undefined;
  let flight: Promise<Outcome> | undefined;
  let failures = 0;
  let waitMs = 0;
  let failedMs = stopwatch(realm);
  /** Whether this tab has to look whether what it knows still holds. */
  let doubtful = false;
  closed.addEventListener("abort", () => {
    channel?.close();
    epoch.abort();
  });

  /** Until the next attempt is allowed, ms. */
  const backoffMs = () => waitMs - failedMs();

  /** Whether the token in hand need not be refreshed yet. */
  const isFresh = () => !!token && token.ageMs() < token.dueMs;

  function tell(message: TabMessage): void {
    if (!closed.aborted) channel?.postMessage(message);
  }

  function show(state: SessionState, claims = token?.claims): void {
    const same = snapshot.state === state && snapshot.claims === claims;
    if (!same) snapshot = { state, claims };
    changed(!same);
  }

  function settle(): void {
    epoch.abort();
    epoch = new AbortController();
  }

  function become(state: SessionState, newToken?: HeldToken, ended?: string): void {
    era++;
    settle();
    token = newToken;
    endedSid = ended;
    failures = 0;
    waitMs = 0;
    doubtful = false;
    show(state);
  }

  function fail(durationMs: number): void {
    failures++;
    // Whoever waits for its turn has an outcome: else all of them would try in turn.
    settle();
    waitMs = durationMs;
    failedMs = stopwatch(realm);
    if (snapshot.state !== "ended") show("offline", snapshot.claims);
  }

  /** Looks soon, and again until it is known what has become of the session. */
  function doubt(): void {
    doubtful = true;
    changed();
  }

  /** The session is over, here and, if `announced`, in the other tabs. */
  function end(announced?: boolean): void {
    const sid = token?.claims.sid ?? endedSid;
    if (announced) tell({ type: "ended", sid });
    become("ended", undefined, sid);
  }

  /** Somebody has signed in: whatever was known before is void. */
  function begin(announced?: boolean): void {
    if (announced) tell({ type: "began" });
    become("unknown");
    // The tab that announced it may be gone before it has a token.
    doubt();
  }

  const hint = () => hintOf(realm, hintCookie);

  /** Whether the hint names another session. */
  const isForeign = (sid: string | undefined) => (hint() ?? sid) !== sid;

  /**
   * Takes note of the hint cookie, which other pages may have changed. Returns whether nobody is signed in.
   *
   * @param online the network is back: what was put off may be tried at once
   */
  function look(online?: boolean): boolean {
    if (online) waitMs = 0;
    const nobody = hint() === "";
    if (nobody) end(true);
    else if (token && isForeign(token.claims.sid)) begin();
    return nobody;
  }

  /** Takes another tab's token unless it is worse than ours. */
  function consider(message: TokenMessage): void {
    const other = holdToken({ ...message, ageMs: agoMs(realm, message.bornAtMs) }, realm);
    if (!other || leftMs(other) <= 0) return;
    const { sid, iat } = other.claims;
    if ((sid && sid === endedSid) || isForeign(sid)) return;
    if (!token || token.claims.sid !== sid || iat >= token.claims.iat) become("active", other);
  }

  const receivers: {
    readonly [T in TabMessage["type"]]: (message: Extract<TabMessage, { readonly type: T }>) => void;
  } = {
    ask({ newerThan, replyTo }) {
      if (!token || token.claims.iat <= newerThan || !isFresh() || doubtful) return;
      // A channel of its own: a reply to everybody would be as many messages as there are tabs, squared.
      const box = open(replyTo);
      box?.postMessage(messageOf(token, realm));
      box?.close();
    },
    began: () => begin(),
    failed({ waitMs, sentAtMs }) {
      const ms = waitMs - agoMs(realm, sentAtMs);
      if (ms > 0 && !isFresh()) fail(ms);
    },
    token: consider,
    ended({ sid }) {
      if (!token) endedSid = sid ?? endedSid;
      else if (!sid) doubt();
      else if (token.claims.sid === sid) end();
    },
  };

  /** Whether a tab hands over a token, or reports an ending. @param newerThan when it was issued, s, at the least */
  async function askTabs(newerThan = 0, patienceMs = 0): Promise<boolean> {
    const { signal } = epoch;
    const replyTo = name + realm.Math.random();
    const box = open(replyTo);
    tell({ type: "ask", newerThan, replyTo });
    await sleep(realm, ASK_MS + patienceMs, signal);
    box?.close();
    return signal.aborted;
  }

  async function request(replacement: boolean): Promise<Outcome> {
    const started = era;
    const sinceMs = stopwatch(realm);
    const outcome = await post(realm, `${baseUrl}/v1/auth/refresh`, closed);
    // Meanwhile another tab has brought a token, the session has ended or another one has begun: that is newer.
    if (started !== era) return {};
    const received = holdToken({ text: outcome.accessToken, ageMs: sinceMs(), replacement }, realm);
    if (received) {
      tell(messageOf(received, realm));
      become("active", received);
    } else if (outcome.ended) end(true);
    else {
      const waitMs = waitAfter(outcome, failures, realm);
      fail(waitMs);
      tell({ type: "failed", waitMs, sentAtMs: realm.Date.now() });
    }
    return outcome;
  }

  return {
    get snapshot() {
      return snapshot;
    },
    get token() {
      return token;
    },
    get doubtful() {
      return doubtful;
    },
    backoffMs,
    isFresh,
    begin,
    doubt,
    look,

    /** Obtains a token. Single flight; never rejects. @param replacement whether a service has refused the token in hand */
    async renew(replacement = false): Promise<Outcome> {
      if (look() || backoffMs() > 0) return {};
      flight ??= (async () => {
        let outcome: Outcome = {};
        const { signal } = epoch;
        const waitedMs = stopwatch(realm);
        await exclusively(realm, name, signal, async () => {
          // What the tab that had the lock before us obtained may still be on its way: where locks take long, so do messages.
          if (waitedMs() > ASK_MS) await sleep(realm, Math.min(MAX_PATIENCE_MS, waitedMs()), signal);
          if (signal.aborted || backoffMs() > 0) return;
          // In doubt the token in hand is good enough, if another tab has no doubt of it.
          const newerThan = doubtful ? 0 : token?.claims.iat;
          const patienceMs = token && leftMs(token) > 0 ? PATIENCE_MS : 0;
          if (!(await askTabs(newerThan, patienceMs))) outcome = await request(replacement);
        });
        return outcome;
      })().finally(() => {
        flight = undefined;
      });
      return flight;
    },

    /** Signs out. */
    async signOut(): Promise<Outcome> {
      const started = era;
      const outcome = await post(realm, `${baseUrl}/v1/auth/logout`, closed);
      if (outcome.cause) return outcome;
      if (started === era) end(true);
      // Somebody may have signed in meanwhile: the service knows which session there is now, if any.
      else begin();
      return outcome;
    },
  };
}
