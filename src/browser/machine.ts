/**
 * The state machine of a tab: what the tab knows about its session, and how each event changes that. The machine reads no clock, sends
 * nothing and waits for nothing, so that tests can drive it through any order of events. Of the failures, only `E001_AUTH_FAILURE` ends a
 * session, in this tab or another one. Every other failure means "offline".
 */
import type { SessionState } from "./snapshot.ts";
import type { HeldToken } from "./token.ts";
import { MAX_RETRY_AFTER_MS } from "./waits.ts";

export type Known = {
  readonly state: SessionState;
  readonly token?: HeldToken | undefined;
  /** Counts new tokens, ends of sessions, and sign-ins. After each of them, the response to a request that was under way is outdated. */
  readonly version: number;
  /** The session that has ended. Tokens of it are no longer accepted from other tabs. */
  readonly endedSid?: string | undefined;
  /** Whether the state may be outdated. The tab then checks it soon, even if the tab is hidden, and repeats that until it is known. */
  readonly doubtful?: boolean;
  /** How many attempts to get a token have failed in a row. */
  readonly failures: number;
  /** How long the next attempt to get a token is delayed, in ms. */
  readonly waitMs: number;
};

export const BEGINNING: Known = { state: "unknown", version: 0, failures: 0, waitMs: 0 };

const become = (known: Known, state: SessionState, token?: HeldToken, endedSid?: string): Known => ({
  state,
  token,
  version: known.version + 1,
  endedSid,
  // The tab that announced a sign-in may close before it has a token, so this tab must check the state itself.
  doubtful: state === "unknown",
  failures: 0,
  waitMs: 0,
});

const sidOf = (known: Known) => known.token?.claims.sid;

/** Returns the session of this tab, or the last one that has ended; undefined if this tab knows none. */
export const lastSid = (known: Known): string | undefined => sidOf(known) ?? known.endedSid;

/** Returns the time until the token must be refreshed, in ms. */
export const dueMs = ({ token }: Known): number => (token ? token.leftMs() - token.reserveMs : 0);

/** Returns whether a session has ended, or the hint cookie names another one. */
const isVoid = (known: Known, hint: string | undefined, sid: string | undefined) =>
  (hint ?? sid) !== sid || (sid && sid === known.endedSid);

/** Somebody has signed in, so everything that was known before is invalid. */
export const begin = (known: Known): Known => become(known, "unknown");

/** The session has ended: the service says so, its cookies are gone, or somebody has signed out. */
export const end = (known: Known): Known => become(known, "ended", undefined, lastSid(known));

/** An attempt to get a token has failed, in this tab or in another one. */
export const fail = (known: Known, waitMs: number): Known => ({
  ...known,
  state: known.state === "ended" ? "ended" : "offline",
  failures: known.failures + 1,
  waitMs: Math.min(waitMs, MAX_RETRY_AFTER_MS),
});

/** Marks the state as possibly outdated: messages of other tabs may have been missed, or a message had incomplete information. */
export const doubt = (known: Known): Known => ({ ...known, doubtful: true });

/** The page has read the hint cookie, because other pages may have changed it. @param former what it read before */
export const look = (known: Known, hint: string | undefined, former: string | undefined): Known =>
  // The cookie of a session that has ended may still be there. So after an end, it counts only if it has changed.
  (known.token || (known.state === "ended" && hint !== former)) && isVoid(known, hint, sidOf(known))
    ? begin(known)
    : known;

/** The service has given a token to this tab. */
export const receive = (known: Known, token: HeldToken): Known =>
  // Another tab reported the end of this session while the token was under way, so the token is dropped and the service is asked again.
  token.claims.sid && token.claims.sid === known.endedSid
    ? { ...known, endedSid: undefined }
    : become(known, "active", token);

/** Another tab has sent a token that is still valid. This tab uses it, unless its own token of that session is newer. */
export const take = (known: Known, other: HeldToken, hint: string | undefined): Known => {
  const { sid, iat } = other.claims;
  const isWorse = known.token && sidOf(known) === sid && iat < known.token.claims.iat;
  return isWorse || isVoid(known, hint, sid) ? known : become(known, "active", other);
};

/** Another tab has learned that a session has ended. `sid` is undefined if that tab never held a token of the session. */
export const hearEnd = (known: Known, { sid }: { readonly sid: string | undefined }): Known => {
  if (!known.token) return { ...known, endedSid: sid ?? known.endedSid };
  if (!sid) return doubt(known);
  return sidOf(known) === sid ? end(known) : known;
};
