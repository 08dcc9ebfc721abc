/**
 * Keeps the access token of a page and renews it: one request per token life in all tabs together.
 *
 * Only `E001_AUTH_FAILURE`, or another tab that received it, ends a session. Every other failure is "offline": the token
 * in hand is used while it is valid, and attempts back off.
 */
import { type ChannelLike, type Realm, sleep } from "./realm.ts";
import { type Outcome, post } from "./request.ts";
import { type SessionState, UNKNOWN } from "./snapshot.ts";
import { exclusively, type TabMessage, type TokenMessage } from "./tabs.ts";
import { type HeldToken, holdToken, leftMs } from "./token.ts";

/** How long the other tabs are given to hand over a token, ms. */
const ASK_MS = 50;
/** How long a message takes to reach the other tabs, generously, ms. */
const SPREAD_MS = 50;
/** Between attempts while the service cannot be reached, ms: doubling, with full jitter. */
const BACKOFF_MS = 1_000;
const MAX_BACKOFF_MS = 60_000;

export type Renewal = ReturnType<typeof createRenewal>;

/**
 * A closure rather than a class: minifiers shorten the names of its variables, and the kit has a size to keep.
 *
 * @param closed ends everything
 * @param changed called after each change of the snapshot
 */
export function createRenewal(realm: Realm, baseUrl: string, closed: AbortSignal, changed: () => void) {
  const name = `session:${baseUrl}`;
  const channel = open(name);
  let snapshot = UNKNOWN;
  let token: HeldToken | undefined;
  /** Aborted when a token, an ending, a beginning or the disposal makes what is under way void. */
  let epoch = new AbortController();
  /** The session that was seen to end. Its tokens are not taken from other tabs any more. */
  let endedSid: string | undefined;
  let flight: Promise<Outcome> | undefined;
  let failures = 0;
  let retryAtMs = 0;
  closed.addEventListener("abort", () => {
    channel?.close();
    epoch.abort();
  });

  const nowMs = () => realm.performance.now();
  /** Until the next attempt is allowed, ms; negative since then. */
  const backoffMs = () => retryAtMs - nowMs();

  /** On a server there are no other tabs, and an open channel would keep the process alive. */
  function open(channelName: string): ChannelLike | undefined {
    if (!realm.document || !realm.BroadcastChannel) return undefined;
    const opened = new realm.BroadcastChannel(channelName);
    opened.onmessage = ({ data }) => receive(data as TabMessage);
    return opened;
  }

  function send(message: TabMessage, to = channel): void {
    if (!closed.aborted) to?.postMessage(message);
  }

  function show(state: SessionState, claims = token?.claims): void {
    if (snapshot.state === state && snapshot.claims === claims) return;
    snapshot = { state, claims };
    changed();
  }

  function become(state: SessionState, newToken?: HeldToken, ended?: string): void {
    epoch.abort();
    epoch = new AbortController();
    token = newToken;
    endedSid = ended;
    failures = retryAtMs = 0;
    show(state);
  }

  function fail(count: number, waitMs: number): void {
    failures = count;
    retryAtMs = nowMs() + waitMs;
    show("offline", snapshot.claims);
  }

  /** The session is over, here and, if `announced`, in the other tabs. */
  function end(announced?: boolean): void {
    const sid = token?.claims.sid ?? endedSid;
    if (announced) send({ type: "ended", sid });
    become("ended", undefined, sid);
  }

  /** Somebody has signed in: whatever was known before is void. */
  function begin(announced?: boolean): void {
    if (announced) send({ type: "began" });
    become("unknown");
  }

  function handOver({ text, ageMs, dueMs, replacement }: HeldToken, to?: ChannelLike): void {
    send({ type: "token", text, bornAtMs: realm.Date.now() - ageMs(), dueMs, replacement }, to);
  }

  /** Takes another tab's token unless it is worse than ours. */
  function consider(message: TokenMessage): void {
    // By the wall clock, which the tabs share: a frozen tab gets its messages late.
    const other = holdToken({ ...message, ageMs: Math.max(0, realm.Date.now() - message.bornAtMs) }, realm);
    if (!other || leftMs(other) <= 0) return;
    const { sid, iat } = other.claims;
    if (sid && sid === endedSid) return;
    if (!token || token.claims.sid !== sid || iat >= token.claims.iat) become("active", other);
  }

  function receive(message: TabMessage): void {
    if (message.type === "ask") {
      // A channel of its own: a reply to everybody would be as many messages as there are tabs, squared.
      const box = open(message.replyTo);
      if (token && token.claims.iat > message.newerThan && leftMs(token) > 0) handOver(token, box);
      // Only of the session that the other tab means: somebody may have signed in by a page load, which no tab announced.
      else if (message.sid && message.sid === endedSid) send({ type: "ended", sid: endedSid }, box);
      box?.close();
    } else if (message.type === "began") begin();
    else if (message.type === "failed") fail(message.failures, message.waitMs);
    else if (message.type === "token") consider(message);
    // Without a token it may be about another session than ours: then the service is asked as usual.
    else if (!token) endedSid = message.sid ?? endedSid;
    else if (token.claims.sid === message.sid) end();
  }

  /**
   * Whether another tab reports, within a moment, what has become of the session.
   *
   * @param newerThan only tokens that were issued after this time (s) are of interest
   */
  async function askTabs(newerThan = 0, patienceMs = 0): Promise<boolean> {
    const { signal } = epoch;
    const replyTo = name + realm.Math.random();
    const box = open(replyTo);
    send({ type: "ask", newerThan, replyTo, sid: token?.claims.sid });
    await sleep(realm, ASK_MS + patienceMs, signal);
    box?.close();
    return signal.aborted;
  }

  async function request(replacement: boolean, { signal } = epoch): Promise<Outcome> {
    if (backoffMs() > 0) return { ok: false, cause: "wait" };
    const sentMs = nowMs();
    const outcome = await post(realm, `${baseUrl}/v1/auth/refresh`, closed);
    // Meanwhile another tab has brought a token, the session has ended or another one has begun: that is newer.
    if (signal.aborted) return outcome;
    const received =
      outcome.ok && holdToken({ text: outcome.accessToken, ageMs: nowMs() - sentMs, replacement }, realm);
    if (received) {
      become("active", received);
      handOver(received);
    } else if (outcome.ok || "cause" in outcome) {
      // Never all clients at once, also where the service names a time.
      const ceilingMs = Math.min(MAX_BACKOFF_MS, BACKOFF_MS * 2 ** failures);
      const waitMs = (outcome.retryAfterMs || 0) + ceilingMs * realm.Math.random();
      fail(failures + 1, waitMs);
      send({ type: "failed", failures, waitMs });
    } else end(true);
    return outcome;
  }

  return {
    get snapshot() {
      return snapshot;
    },
    get token() {
      return token;
    },
    backoffMs,
    begin,
    end,
    askTabs,

    /**
     * Obtains a token, from another tab or from the service. Single flight; never rejects.
     *
     * @param replacement whether a service has refused the token in hand
     * @param patienceMs how much longer the other tabs are given to hand over a token
     */
    renew(replacement = false, patienceMs = 0): Promise<Outcome> {
      flight ??= new Promise<Outcome>((resolve) => {
        const started = epoch;
        const startedMs = nowMs();
        const turn = async () => {
          // What the tab that had the lock before us obtained may still be on its way: where locks take long, so do messages.
          await askTabs(token?.claims.iat, patienceMs + nowMs() - startedMs);
          if (started.signal.aborted) return;
          resolve(await request(replacement, started));
          // Until the others have received it, so that none of them takes its turn.
          await sleep(realm, SPREAD_MS, closed);
        };
        exclusively(realm, name, started.signal, turn).then(() => resolve({ ok: true }));
      }).finally(() => {
        flight = undefined;
      });
      return flight;
    },

    /** Signs out. */
    async signOut(): Promise<Outcome> {
      const { signal } = epoch;
      const sid = token?.claims.sid;
      const outcome = await post(realm, `${baseUrl}/v1/auth/logout`, closed);
      if ("cause" in outcome) return outcome;
      if (!signal.aborted) end(true);
      else {
        // Somebody may have signed in meanwhile: the service knows which session there is now, if any.
        become("unknown", undefined, sid);
        await request(false);
      }
      return outcome;
    },

    /** The network is back: what was put off may be tried at once. */
    retryNow(): void {
      retryAtMs = 0;
    },
  };
}
