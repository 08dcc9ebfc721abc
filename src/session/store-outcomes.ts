/** The results of the store's verbs (ports.ts). */
import type { ProofRefusal, ServingVerdict } from "./device-binding.ts";
import type { Revocation, Session, SessionId } from "./model.ts";
import type { PresentedToken, RotationState } from "./rotation.ts";
import type { StoreMs } from "./time.ts";

export type CreateOutcome = {
  readonly session: Session;
  /** The subject's oldest sessions, ended because the subject had too many (`session_limit`). */
  readonly evicted: readonly SessionId[];
  /** Whether the session to replace was live and has ended now. */
  readonly replaced: boolean;
};

/** `outdated`: the session has a later authentication already. */
export type ElevateOutcome =
  | { readonly ok: true; readonly session: Session }
  | { readonly ok: false; readonly reason: "outdated" | "revoked" | "unknown" };

/**
 * - `other_key`: the session has another one, which is in use or was registered a moment ago.
 * - `outdated`: the refresh token was replaced long ago.
 */
export type RegisterKeyOutcome =
  | { readonly ok: true; readonly session: Session; readonly now: StoreMs }
  | { readonly ok: false; readonly reason: "other_key" | "outdated" | "revoked" | "unknown" };

export type UnbindOutcome =
  | { readonly ok: true; readonly session: Session /** Whether the session had a key. */; readonly hadKey: boolean }
  | { readonly ok: false; readonly reason: "revoked" | "unknown" };

export type RotateOutcome =
  | {
      readonly ok: true;
      readonly outcome: "repeat" | "rotate" | "heal" | "recover";
      readonly session: Session;
      /** The current child: the token that the client must present next. */
      readonly child: PresentedToken;
      readonly now: StoreMs;
      /** The verdict on the session's device key. */
      readonly device: ServingVerdict;
    }
  /**
   * The same step has ended the session: the token was used before (`reuse`), or is in the hands of somebody who has never had the
   * device key (`two_holders`).
   */
  | { readonly ok: false; readonly reason: "reuse" | "two_holders"; readonly subject: string }
  /** Nothing was changed: a fresh device cookie of the session's key is missing, or the session requires a key and has none. */
  | { readonly ok: false; readonly reason: "device_proof_missing" | "device_required"; readonly session: Session }
  /** Nothing was changed: the session is bound to a key, and the request proves none, or another one. */
  | { readonly ok: false; readonly reason: ProofRefusal; readonly session: Session }
  /**
   * - `revoked`: the session has been ended and its marker is still there.
   * - `idle`, `expired`: the session is past its idle expiry or its absolute expiry.
   * - `unknown`: there is no session of that id, and no marker.
   * - `wrong_transport`: its refresh token may not be presented in this way. Nothing was changed.
   * - `wrong_client`: the session is another client's, which would have bound it to a key. Nothing was changed.
   */
  | {
      readonly ok: false;
      readonly reason: "revoked" | "idle" | "expired" | "unknown" | "wrong_transport" | "wrong_client";
    };

/**
 * `wasLive`: a live session has ended. Otherwise there was no session, but access tokens of it may live (the store lost its
 * last writes): the marker and the log entry are written nevertheless. `already_ended`: the marker was there.
 * `proof_missing`, `other_key`: nothing was changed, because the session is bound to a key that its client must prove.
 */
export type EndOutcome =
  | { readonly ok: true; readonly wasLive: true; readonly subject: string }
  | { readonly ok: true; readonly wasLive: false }
  | { readonly ok: false; readonly reason: "already_ended" }
  | { readonly ok: false; readonly reason: ProofRefusal; readonly subject: string };

/** `not_found`: the target is not live, or belongs to another subject. `actor_ended`: the session that asks is not live. */
export type EndOwnedOutcome =
  | { readonly ok: true }
  | { readonly ok: false; readonly reason: "not_found" | "actor_ended" };

/**
 * `count` sessions have ended. Those in `ended`, oldest first, are to be recorded by the caller. The rest is left to be claimed: others
 * did it, or it is too long ago (events.ts).
 */
export type EndAllOutcome =
  | { readonly ok: true; readonly ended: readonly SessionId[]; readonly count: number }
  | { readonly ok: false; readonly reason: "actor_ended" };

/** A session that ended because it is past its lifetimes. */
export type ExpiredSession = {
  readonly sid: SessionId;
  /** Absent where the store does not know it any more: nobody looked for expired sessions for minutes. */
  readonly subject?: string;
};

export type ExpireOutcome = {
  /** These are to be recorded by the caller. */
  readonly ended: readonly ExpiredSession[];
  /** Whether there is nothing left to look at for now. */
  readonly isDone: boolean;
};

export type SessionPage = {
  readonly sessions: readonly Session[];
  /** Where the next page starts; undefined on the last one. */
  readonly next: string | undefined;
};

export type Found =
  | { readonly ok: true; readonly session: Session; readonly rotation: RotationState; readonly now: StoreMs }
  | { readonly ok: false; readonly reason: "revoked" | "unknown" };

export type RevocationBatch = {
  readonly revocations: readonly Revocation[];
  /** All sessions that were created at this time or before have ended, as far as the part of the log that was read shows; 0: none. */
  readonly revokedUntil: StoreMs;
  /** Resume after this batch. Opaque to the domain, and meaningful to every instance on the same store. */
  readonly cursor: string;
  /** When this was read; the earliest time, if several nodes were read. */
  readonly now: StoreMs;
  /** False if more had been revoked by then than has been read: a relay may have received a part. Absent: everything has been read. */
  readonly isComplete?: boolean;
};
