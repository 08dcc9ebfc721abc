/**
 * The interfaces that the domain needs from outside. The store decides about a session in one atomic step, a script or a transaction:
 * nothing is read through this port in order to be written back. What can have an effect in part says so.
 */

import type { SessionFilter } from "./admin/filter.ts";
import type { SessionLimit } from "./admin/limit.ts";
import type { Audit } from "./audit.ts";
import type { DevicePresentation } from "./devices/binding.ts";
import type { DeviceKey, KeyProof } from "./devices/key.ts";
import type { AttachedSessions } from "./endings/attached.ts";
import type { Origin, SessionEventLog } from "./events/events.ts";
import type {
  Authentication,
  EndReason,
  LastSeen,
  LogEntry,
  NewSession,
  ProviderNote,
  SessionId,
  StorePart,
  UpstreamLogin,
} from "./model.ts";
import type { TokenFields } from "./rotation/rotation.ts";
import type {
  CreateOutcome,
  ElevateOutcome,
  EndAllOutcome,
  EndOutcome,
  EndOwnedOutcome,
  ExpireOutcome,
  ForgetOutcome,
  Found,
  RegisterKeyOutcome,
  RevocationBatch,
  RotateOutcome,
  SessionChange,
  SessionPage,
  UnbindOutcome,
  UpdateOutcome,
} from "./store-outcomes.ts";
import type { StoreMs } from "./time.ts";

export type * from "./store-outcomes.ts";
export type * from "./token-ports.ts";

/** The store is unreachable, loading, read-only, out of memory or timed out. Whether the operation took effect is unknown. */
export class StoreUnavailable extends Error {
  override readonly name: string = "StoreUnavailable";
}

/** The command was not sent to the store, because too many commands are waiting. */
export class StoreBusy extends StoreUnavailable {
  override readonly name = "StoreBusy";
}

/** The store responds but must not be used until it has been fixed. A starting service exits; a running one treats this as an outage. */
export class StoreRefused extends StoreUnavailable {
  override readonly name = "StoreRefused";
}

export type CreateOptions = {
  /** If the subject has more live sessions than this after the creation, the least recently used end (limit.ts). */
  readonly cap: number;
  /** If it refuses the session, nothing is created, and nothing ends. */
  readonly limit?: SessionLimit | undefined;
  /**
   * The session that the new one replaces. It ends (`replaced`) in the step that creates the new one, or in an earlier step if the creation
   * takes several. If it has another subject, it may end in a step of its own: before the creation, or after it if the limit may refuse the
   * new session. So a creation that fails may have ended it. If it is live and the limit counts it, the new session takes its place, and
   * the limit refuses nothing.
   */
  readonly replaces?: SessionId | undefined;
  readonly origin?: Origin | undefined;
  /**
   * For how long the id of the session is reserved, in ms. In that time, a further call with the same id returns the session of the first
   * call (`isNew` is false), or `ended` if that session has ended. So an id that is derived from something else, such as a session of
   * another system, leads to one session only.
   */
  readonly reservedMs?: number | undefined;
};

/**
 * All times that go through this port are the store's own (time.ts). An operation that is given an `origin` also writes a due record of
 * every session that it creates or ends (events.ts); a refresh that detects a reused token always writes one. So endings are recorded
 * even if the reply is lost.
 */
export interface SessionStore extends SessionEventLog, AttachedSessions {
  /** Creates a session with its first refresh token, whose nonce is `childNonce`. */
  create(session: NewSession, childNonce: string, options: CreateOptions): Promise<CreateOutcome>;

  /**
   * Refreshes a session: applies the rules of devices/binding.ts, then those of rotation.ts, to the stored state. The outcomes `reuse` and
   * `two_holders` also end the session. A successful one moves the idle expiry. Without a presentation it works as with
   * NO_PRESENTATION.
   *
   * @param lastSeen what the session keeps of this request, in place of what it kept before; undefined to keep nothing. `repeat` changes
   *   neither this nor `lastRefreshedAt`, the time that belongs to it
   */
  rotate(
    sid: SessionId,
    token: TokenFields,
    freshNonce: string,
    presentation?: DevicePresentation,
    lastSeen?: LastSeen,
  ): Promise<RotateOutcome>;

  /** Registers a device key for a session, unless the session has another key that cannot be replaced. */
  registerKey(sid: SessionId, token: TokenFields, key: DeviceKey): Promise<RegisterKeyOutcome>;

  unbind(sid: SessionId): Promise<UnbindOutcome>;

  /** Returns a session, its rotation state, and the store's time, with which the times of both are compared. */
  find(sid: SessionId): Promise<Found>;

  /** Returns the subject's live sessions, newest first (by creation, then sid). `from` is the `next` of the previous page. */
  list(subject: string, limit: number, from: string | undefined, filter?: SessionFilter): Promise<SessionPage>;

  /** Returns the live sessions of all subjects. A page costs little: it may have fewer than `limit` sessions and still a `next`. */
  listAll(limit: number, from: string | undefined, filter: SessionFilter): Promise<SessionPage>;

  /** Returns how many sessions are live. The number is an estimate if an exact count would cost too much. */
  count(): Promise<number>;

  /**
   * Ends a session: deletes it, keeps a marker that it has ended, and adds an entry to the revocation log.
   * @param holder if present, the session ends only if judgeEnd (devices/binding.ts) allows it
   */
  end(sid: SessionId, reason: EndReason, origin?: Origin, holder?: EndingHolder): Promise<EndOutcome>;

  /** Ends the session `target` on behalf of the live session `caller` of the same subject, which may be `target` itself. */
  endOwned(caller: SessionId, target: SessionId, reason: EndReason, origin?: Origin): Promise<EndOwnedOutcome>;

  /**
   * Ends all sessions that a subject has at this moment, except `except`. A session that is created later stays. If the option `caller`
   * names a session, nothing ends unless that session is live.
   */
  endAll(subject: string, reason: EndReason, options?: EndAllOptions): Promise<EndAllOutcome>;

  /** Returns the live sessions, and maybe some that have ended, that came from a login at an identity provider (endings/upstream.ts). */
  sessionsOf(login: UpstreamLogin): Promise<readonly SessionId[]>;

  /** Returns whether any instance has noted what a provider has said, and the note still exists. */
  isNoted(note: ProviderNote): Promise<boolean>;

  /** Notes what a provider has said. @param lifeMs for how long this is remembered */
  note(note: ProviderNote, lifeMs: number): Promise<void>;

  /**
   * Ends every session that was created before `createdBefore`, or all that exist if that is undefined. A session that is created after
   * the call began stays. Returns the time of creation up to which sessions have ended.
   *
   * This is not one atomic step: if it throws, some sessions may have ended; they are recorded, and the call can be repeated.
   */
  revokeAll(createdBefore: StoreMs | undefined, origin?: Origin): Promise<StoreMs>;

  /**
   * Ends a bounded number of sessions that are past their lifetimes (reason `expired`), each once, however many instances look for them.
   * An instance reserves the part of the store in which it searches. If it dies, another one takes over within half a minute.
   */
  expire(): Promise<ExpireOutcome>;

  /**
   * Removes what the store keeps of a subject, except of its live sessions: events, due records, what is left of sessions that have ended
   * or expired. Signals of its endings stay in the log, but name the session alone. When this call resolves, the files of the store do not
   * have the data any more.
   *
   * This is not one atomic step: if it throws, some data may have been removed, and the call can be repeated.
   */
  forget(subject: string): Promise<ForgetOutcome>;

  /**
   * Replaces the authentication of a session, unless the stored one is later.
   * @param outdatesTokens whether to raise the version, and to mark access tokens of earlier versions as stale
   */
  elevate(sid: SessionId, authentication: Authentication, outdatesTokens?: boolean): Promise<ElevateOutcome>;

  /**
   * Replaces claims and audiences of a session, and raises its version unless they are the same as before, so that a call may be repeated.
   * With `outdatesTokens`, access tokens of earlier versions become stale, and the revocation log gets a mark that says so.
   */
  update(sid: SessionId, change: SessionChange): Promise<UpdateOutcome>;

  /** Returns the log after `cursor`, at least the entries that were appended since; without a cursor, everything that it contains. */
  revocations(cursor: string | undefined): Promise<RevocationBatch>;

  /**
   * Calls `wake` soon after entries were appended to the log, by any instance, with the entries that are known; an empty list means that
   * entries may have been missed. Such a call is only a hint: it may come late, twice or never. Only the log is complete, so callers read
   * it after an empty list and at least once a second. Returns a function that stops the calls.
   */
  onRevocation(wake: (hint: readonly LogEntry[]) => void): () => void;

  /** Returns the current time of the part of the store that has a session, as far as this process knows it. It does no I/O. */
  now(sid: SessionId): StoreMs;

  /**
   * Returns by how many ms the wall clock is ahead of the time of a part of the store, or of the store as a whole if no place is given.
   * The value changes when the wall clock is set. The call does no I/O.
   */
  shiftMs(place?: StorePart): number;

  /** Resolves if the store responds. @throws StoreUnavailable */
  ping(): Promise<void>;

  close(): Promise<void>;
}

/** What an operation needs that is recorded: some methods of the store, and the audit. */
export type AuditedStore<Verb extends keyof SessionStore> = {
  readonly store: Pick<SessionStore, Verb>;
  readonly audit: Audit;
};

/** What the holder of a refresh token presents in order to end its session. */
export type EndingHolder = Pick<TokenFields, "issuedAt"> & { readonly proof?: KeyProof | undefined };

export type EndAllOptions = { readonly except?: SessionId; readonly caller?: SessionId; readonly origin?: Origin };

/** Thrown for a cursor that this store did not make. */
export class InvalidCursor extends Error {
  override readonly name = "InvalidCursor";
}

/** Limits how often something may be done, by key. */
export interface RateLimit {
  /** Counts one event for `key`. Returns undefined within the limit, otherwise how long to wait, in ms. */
  take(key: string): number | undefined;
  /** Uncounts one counted event. It is for events that failed through no fault of their caller. */
  giveBack(key: string): void;
}

export interface PeekableRateLimit extends RateLimit {
  /** Returns how long to wait, in ms, if one more event for `key` would exceed the limit. It counts nothing. */
  peek(key: string): number | undefined;
}

export interface Random {
  sessionId(subject: string): SessionId;
  /** Returns a nonce: 11 characters of base64url, 8 bytes. */
  nonce(): string;
}

/** A monotonic clock, in ms. Only differences between its times have a meaning. */
export type Clock = () => number;
