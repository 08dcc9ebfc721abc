/** The outcomes of the store's methods (ports.ts). */
import type { SessionLimit } from "./admin/limit.ts";
import type { ServingVerdict, UnprovenReason } from "./devices/binding.ts";
import type { Audience, Revocation, Session, SessionId, StaleMark } from "./model.ts";
import type { RotationState, TokenFields } from "./rotation/rotation.ts";
import type { StoreMs } from "./time.ts";

/** A session that has ended, and the subject of its actor, if it had one. */
export type EndedSession = { readonly sid: SessionId; readonly actor?: string | undefined };

export type CreateOutcome =
  | {
      readonly ok: true;
      /** False if an earlier call has created the session. Only a call with `reservedMs` returns such a session. */
      readonly isNew: boolean;
      readonly session: Session;
      readonly rotation: RotationState;
      /** The sessions that ended because the subject had too many (`session_limit`), in this order. */
      readonly evicted: readonly EndedSession[];
      /** The session to replace, if it was live and has ended now. */
      readonly replaced: EndedSession | undefined;
      /**
       * Whether none of the subject's newest 128 live sessions was created with the same user agent. Always false if the user agent is
       * empty, and with `reservedMs`, because such a session continues one of another system.
       */
      readonly newDevice: boolean;
    }
  /** The limit does not allow another session. `live` has some of those that it counts, the least recently used first. */
  | {
      readonly ok: false;
      readonly reason: "refused";
      readonly limit: SessionLimit;
      readonly live: readonly Session[];
    }
  /** With `reservedMs`: an earlier call has created the session, and it has ended since. */
  | { readonly ok: false; readonly reason: "ended" };

/** `outdated`: the session already has a later authentication. `has_actor`: its subject does not use it, and cannot authenticate in it. */
export type ElevateOutcome =
  | { readonly ok: true; readonly session: Session }
  | { readonly ok: false; readonly reason: "outdated" | "has_actor" | "revoked" | "unknown" };

/** `ended`: the actor's session is not live. `full`: too many sessions end with it. */
export type AttachOutcome = { readonly ok: true } | { readonly ok: false; readonly reason: "ended" | "full" };

/** What `update` changes. What is absent stays as it is. */
export type SessionChange = {
  /** In the form of `claims` of NewSession. */
  readonly claims?: string;
  readonly audience?: Audience;
  /** The version that the session must have; absent for any. */
  readonly ifVersion?: number;
  readonly outdatesTokens: boolean;
};

/** `conflict`: the session has another version. */
export type UpdateOutcome =
  | {
      readonly ok: true;
      readonly session: Session;
      /** Whether anything is different now. */
      readonly isChanged: boolean;
    }
  | { readonly ok: false; readonly reason: "conflict" | "revoked" | "unknown" };

/** `other_key`: the session has another key, in use or registered a moment ago. `outdated`: the refresh token was replaced long ago. */
export type RegisterKeyOutcome =
  | { readonly ok: true; readonly session: Session; readonly now: StoreMs }
  | { readonly ok: false; readonly reason: "other_key" | "outdated" | "revoked" | "unknown" };

export type UnbindOutcome =
  | { readonly ok: true; readonly session: Session; readonly hadKey: boolean }
  | { readonly ok: false; readonly reason: "revoked" | "unknown" };

export type RotateOutcome =
  | {
      readonly ok: true;
      readonly outcome: "repeat" | "rotate" | "heal" | "recover";
      readonly session: Session;
      /** The refresh token that the client must present next. */
      readonly child: TokenFields;
      readonly now: StoreMs;
      readonly device: ServingVerdict;
    }
  /** The session has ended: its token was reused (`reuse`), or a client without its device key also holds a token (`two_holders`). */
  | {
      readonly ok: false;
      readonly reason: "reuse" | "two_holders";
      readonly subject: string;
      readonly actor?: string | undefined;
    }
  /** Refused, and nothing was changed: a fresh device cookie of the session's key is missing, or the session lacks a required key. */
  | { readonly ok: false; readonly reason: "device_proof_missing" | "device_required"; readonly session: Session }
  /** Refused, and nothing was changed: the session is bound to a key, and the request proves no key or another key. */
  | { readonly ok: false; readonly reason: UnprovenReason; readonly session: Session }
  /**
   * - `revoked`: the session has been ended, and the store still keeps a marker of that.
   * - `idle`, `expired`: the session is past its idle expiry or its absolute expiry.
   * - `unknown`: there is no session of that id, and no marker of one that has ended.
   * - `wrong_transport`: its refresh token may not be presented in this way. Nothing was changed.
   * - `wrong_client`: the client is not that of the session, and would have bound the session to a key. Nothing was changed.
   */
  | {
      readonly ok: false;
      readonly reason: "revoked" | "idle" | "expired" | "unknown" | "wrong_transport" | "wrong_client";
    };

/**
 * `wasLive`: a live session has ended. If false, there was no session, but its access tokens may still be valid because the store lost
 * its last writes: the ending is marked and logged nevertheless. `already_ended`: the session was revoked before.
 * `proof_missing`, `other_key`: nothing was changed, because the session is bound to a key that its client must prove.
 */
export type EndOutcome =
  | { readonly ok: true; readonly wasLive: true; readonly subject: string; readonly actor?: string | undefined }
  | { readonly ok: true; readonly wasLive: false }
  | { readonly ok: false; readonly reason: "already_ended" }
  | {
      readonly ok: false;
      readonly reason: UnprovenReason;
      readonly subject: string;
      readonly actor?: string | undefined;
    };

/** `not_found`: the target is not live, or belongs to another subject. `caller_ended`: the session of the caller is not live. */
export type EndOwnedOutcome =
  | { readonly ok: true; readonly actor?: string | undefined }
  | { readonly ok: false; readonly reason: "not_found" | "caller_ended" };

/** `count` sessions have ended. The caller records the endings in `ended`, oldest first. The others are recorded later (events.ts). */
export type EndAllOutcome =
  | { readonly ok: true; readonly ended: readonly EndedSession[]; readonly count: number }
  | { readonly ok: false; readonly reason: "caller_ended" };

export type ExpiredSession = EndedSession & {
  /** Absent if the store does not know the subject any more, because no instance looked for expired sessions for minutes. */
  readonly subject?: string | undefined;
};

export type ExpireOutcome = {
  /** The sessions that have ended, which the caller must record. */
  readonly ended: readonly ExpiredSession[];
  /** Whether no expired sessions are left at present. */
  readonly isDone: boolean;
};

export type ForgetOutcome = {
  /** How many events were removed. */
  readonly events: number;
  /** How many signals lost their subject before every subscription had read them. */
  readonly signals: number;
};

export type SessionPage = {
  readonly sessions: readonly Session[];
  /** The place at which the next page starts; undefined on the last one. */
  readonly next: string | undefined;
};

export type Found =
  | { readonly ok: true; readonly session: Session; readonly rotation: RotationState; readonly now: StoreMs }
  | { readonly ok: false; readonly reason: "revoked" | "unknown" };

export type RevocationBatch = {
  readonly revocations: readonly Revocation[];
  readonly staleMarks: readonly StaleMark[];
  /** A logout of everyone ended all sessions created up to this time. 0 if there was none, or if an earlier batch contained its time. */
  readonly revokedUntil: StoreMs;
  /** The cursor to resume after this batch. The domain does not interpret it, and every instance on the same store accepts it. */
  readonly cursor: string;
  /** When the batch was read. If several nodes were read, it is the earliest of their times. */
  readonly now: StoreMs;
};
