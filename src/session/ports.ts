/**
 * The interfaces that the domain needs from outside. Each store verb is one atomic step (one script, one transaction): nothing is ever
 * read through this port in order to be written back.
 */

import type { DevicePresentation } from "./device-binding.ts";
import type { DeviceKey, KeyProof } from "./device-key.ts";
import type { Origin, SessionEventLog } from "./events.ts";
import type { SessionFilter } from "./filter.ts";
import type { Authentication, EndReason, NewSession, Place, Revocation, Session, SessionId } from "./model.ts";
import type { PresentedToken } from "./rotation.ts";
import type {
  CreateOutcome,
  ElevateOutcome,
  EndAllOutcome,
  EndOutcome,
  EndOwnedOutcome,
  ExpireOutcome,
  Found,
  RegisterKeyOutcome,
  RevocationBatch,
  RotateOutcome,
  SessionPage,
  UnbindOutcome,
} from "./store-outcomes.ts";
import type { StoreMs, WallMs } from "./time.ts";

export type * from "./store-outcomes.ts";

/** The store cannot respond: unreachable, loading, read-only, out of memory, timed out. The outcome is unknown, never negative. */
export class StoreUnavailable extends Error {
  override readonly name: string = "StoreUnavailable";
}

/** The store was not asked, because too many commands wait for it. */
export class StoreBusy extends StoreUnavailable {
  override readonly name = "StoreBusy";
}

/** The store responds but must not be used until an operator has fixed it. At the start, the start fails; later it is an outage. */
export class StoreRefused extends StoreUnavailable {
  override readonly name = "StoreRefused";
}

/**
 * All times that go through this port are the store's own (time.ts).
 *
 * A step that is given an `origin` leaves a due record of every session that it creates or ends, in the same step (events.ts); a
 * reuse always does. Its caller may never learn that the step was done: the record does not depend on it.
 */
export interface SessionStore extends SessionEventLog {
  /**
   * Creates a session at `firstState(childNonce)`; beyond `cap` live sessions of the subject, the oldest end. Before all this
   * ends `replaces` (`replaced`): in the same step if it is of the same subject.
   */
  create(
    session: NewSession,
    childNonce: string,
    cap: number,
    replaces?: SessionId,
    origin?: Origin,
  ): Promise<CreateOutcome>;

  /**
   * The rotation of rotation.ts on the stored state, after the precondition of device-binding.ts; `reuse` and `two_holders` also
   * end the session. Rotating slides the idle expiry.
   *
   * @param device what is presented of a device; undefined: nothing, as NO_PRESENTATION has it
   */
  rotate(
    sid: SessionId,
    token: PresentedToken,
    freshNonce: string,
    device?: DevicePresentation,
  ): Promise<RotateOutcome>;

  /** Gives a session the key of its device, unless it has another one that is not replaceable. */
  registerKey(sid: SessionId, token: PresentedToken, key: DeviceKey): Promise<RegisterKeyOutcome>;

  /** Takes the device key of a session away. */
  unbind(sid: SessionId): Promise<UnbindOutcome>;

  /** A session, its rotation state, and the store's time to compare it with. */
  find(sid: SessionId): Promise<Found>;

  /** Returns the subject's live sessions, newest first (by creation, then sid). `from` is the `next` of the previous page. */
  list(subject: string, limit: number, from: string | undefined, filter?: SessionFilter): Promise<SessionPage>;

  /**
   * Returns the live sessions of all subjects. Its cost is bounded: a page may have fewer than `limit` sessions, or none, and still a
   * `next`.
   */
  listAll(limit: number, from: string | undefined, filter: SessionFilter): Promise<SessionPage>;

  /** How many sessions are live: an estimate where counting them all would cost too much. */
  count(): Promise<number>;

  /**
   * Ends a session: deletes it, writes its marker, appends to the log.
   *
   * @param holder with it, the session ends only if judgeEnd of device-binding.ts allows it
   */
  end(sid: SessionId, reason: EndReason, origin?: Origin, holder?: EndingHolder): Promise<EndOutcome>;

  /** Ends `target` for the live session `actor` of the same subject. */
  endOwned(actor: SessionId, target: SessionId, reason: EndReason, origin?: Origin): Promise<EndOwnedOutcome>;

  /**
   * Ends what `subject` has at this moment but `except`; a login after it lives. With `actor`, only
   * while that session is live.
   */
  endAll(subject: string, reason: EndReason, options?: EndAllOptions): Promise<EndAllOutcome>;

  /**
   * Ends every session that was created before `createdBefore`, or all that there are now; one that is created after this
   * began lives. Not one step: what throws may have ended some of them, which is recorded then, and is repeated.
   *
   * @returns the time of creation up to which they have ended
   */
  revokeAll(createdBefore: StoreMs | undefined, origin?: Origin): Promise<StoreMs>;

  /**
   * Ends sessions that are past their lifetimes (`expired`): a bounded number, each once, whatever number of instances look for them.
   * An instance looks at a part of the store while it holds that part; another one takes over half a minute later at the latest.
   */
  expire(): Promise<ExpireOutcome>;

  /** Replaces what a session knows of its user's authentication, unless that is later. */
  elevate(sid: SessionId, authentication: Authentication): Promise<ElevateOutcome>;

  /** The log after `cursor`, at least what was appended since; without a cursor all that it holds. */
  revocations(cursor: string | undefined): Promise<RevocationBatch>;

  /**
   * Calls `wake` soon after entries were appended to the log, by any instance, with those that are known;
   * an empty hint means that entries may have been missed. A hint only: it may arrive late, twice or never,
   * and the log is the truth, to be read after an empty hint and at least once a second. Returns how to stop.
   */
  onRevocation(wake: (hint: readonly Revocation[]) => void): () => void;

  /** Returns the time in the part of the store that has a session, as far as it is known here. No I/O. */
  now(sid: SessionId): StoreMs;

  /**
   * Returns by how much the wall clock is ahead of the store's time, ms: at a place, or where all sessions are meant. It changes when
   * that clock is set. No I/O.
   */
  shiftMs(place?: Place): number;

  /** Resolves when the store responds now. @throws StoreUnavailable */
  ping(): Promise<void>;

  close(): Promise<void>;
}

/** What the holder of a refresh token presents in order to end its session. */
export type EndingHolder = Pick<PresentedToken, "issuedAt"> & { readonly proof?: KeyProof | undefined };

export type EndAllOptions = {
  readonly except?: SessionId;
  readonly actor?: SessionId;
  readonly origin?: Origin;
};

/** A cursor that this store did not make. */
export class InvalidCursor extends Error {
  override readonly name = "InvalidCursor";
}

/** A parsed refresh token whose MAC is verified. */
export type RefreshToken = PresentedToken & { readonly sid: SessionId };

export type RefreshTokenResult =
  | { readonly ok: true; readonly token: RefreshToken }
  | { readonly ok: false; readonly reason: "malformed" | "unknown_key" | "forged" };

export interface RefreshTokens {
  /** Returns the canonical text of a token, under the current MAC key. */
  mint(token: RefreshToken): string;
  /** Parses and verifies a token. There is no I/O: a forged token is refused here. */
  parse(text: string): RefreshTokenResult;
}

export type AccessToken = { readonly token: string; readonly expiresAt: WallMs };

/** The claims of a verified access token. */
export type AccessClaims = {
  readonly sid: SessionId;
  readonly sub: string;
  /** Who it is for; never empty. */
  readonly aud: readonly string[];
  readonly exp: number;
  readonly jti: string;
  /** All of its claims, by their JWT names. */
  readonly all: Readonly<Record<string, unknown>>;
};

/** A token whose signature, type and issuer are valid. */
export type AuthenticAccessToken =
  | { readonly ok: true; readonly claims: AccessClaims }
  | { readonly ok: false; readonly reason: "malformed" | "unknown_key" | "forged" | "wrong_issuer" };

/** The token has expired but is authentic in everything else. */
export type AccessTokenResult =
  | AuthenticAccessToken
  | { readonly ok: false; readonly reason: "expired"; readonly claims: AccessClaims };

export interface AccessTokens {
  /**
   * Signs an access token of the session. It never outlives the session's expiries.
   *
   * @param deviceProven whether its client has proven possession of the session's device key
   */
  issue(session: Session, now: StoreMs, deviceProven?: boolean): AccessToken;
  /** Parses and verifies signature, type, issuer and times; the audience may be any that a session was given. */
  verify(text: string): AccessTokenResult;
}

/** Limits how often something may be done, by key. */
export interface RateLimit {
  /** Counts one event for `key`. Returns undefined within the limit; over it, how long to wait, in ms. */
  take(key: string): number | undefined;
  /** Takes back one event that had no result through no fault of its caller. */
  giveBack(key: string): void;
}

export interface PeekableRateLimit extends RateLimit {
  /** Returns how long to wait, in ms, if one more event for `key` would be over the limit. Counts nothing. */
  peek(key: string): number | undefined;
}

/** Randomness, injected. */
export interface Random {
  /** A session id in the subject's partition. */
  sessionId(subject: string): SessionId;
  /** A nonce: 11 characters of base64url, 8 bytes. */
  nonce(): string;
}

/** A steady clock, in ms. It is never set, and only differences between its times have a meaning. */
export type Clock = () => number;
