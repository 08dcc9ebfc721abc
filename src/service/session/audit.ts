/**
 * Audit events: one for each business fact, named after the OWASP logging vocabulary. Events never contain a token. Implementations of
 * `Audit` never throw, so that a failing audit cannot fail a request.
 */
import type { Scope } from "./admin/access.ts";
import type { LimitScope } from "./admin/limit.ts";
import type { UnprovenReason } from "./devices/binding.ts";
import type { DeviceBinding } from "./devices/key.ts";
import type { DeviceChallengeCheck, DeviceProofRefusal, KeyProofRefusal } from "./devices/ports.ts";
import type { RateLimitName, RefusalReason } from "./errors.ts";
import type { EndReason, Session, SessionId } from "./model.ts";
import type { RotationOutcome } from "./rotation/rotation.ts";
import type { StoreMs } from "./time.ts";

export type AuditEvent =
  | (OfSession & {
      readonly event: "session_created";
      /** The data of the new session, which is kept with the event in the store. Log lines do not contain it. */
      readonly session: Pick<Session, "client" | "clientId">;
      /** Present if no live session of the subject had the user agent of this one. */
      readonly newDevice?: true;
      /** The name of the cookie of another system, whose session this one continues (migration/migrate.ts). */
      readonly cookieName?: string;
      readonly happenedAt?: StoreMs;
    })
  /** A limit did not allow another session of the subject. */
  | {
      readonly event: "session_refused";
      readonly subject: string;
      readonly clientId: string;
      readonly scope: LimitScope;
      readonly maxSessions: number;
    }
  | (OfSession & { readonly event: "session_renewed"; readonly outcome: Exclude<RotationOutcome, "reuse"> })
  /**
   * An access token was exchanged for one that can do less. `actor` is who acts for the subject, if anybody does, and `formerActors` are
   * those for whom the actor acts in turn, such as a member of support that uses the session.
   */
  | (OfSession & {
      readonly event: "token_exchanged";
      readonly audiences: readonly string[];
      readonly actor?: string | undefined;
      readonly formerActors?: readonly string[];
    })
  | {
      readonly event: "session_ended";
      readonly sid: SessionId;
      readonly subject?: string | undefined;
      readonly actor?: string | undefined;
      readonly reason: EndReason;
      /** When the store ran the operation. Present only if the event could not be recorded at once, and is recorded later. */
      readonly happenedAt?: StoreMs;
    }
  /** Everyone was logged out: sessions that were created at `revokedUntil` or before have ended. */
  | { readonly event: "all_sessions_ended"; readonly revokedUntil: StoreMs; readonly happenedAt?: StoreMs }
  /** The data of a subject was removed, or given out. Neither event names the subject: the ids of the request tell which one it was. */
  | {
      readonly event: "subject_forgotten";
      readonly sessions: number;
      readonly events: number;
      readonly signals: number;
    }
  | {
      readonly event: "subject_exported";
      readonly sessions: number;
      readonly events: number;
      readonly signals: number;
    }
  | (OfSession & {
      readonly event: "session_elevated";
      readonly methods: readonly string[];
      readonly contextClass: string;
      /** Present if older access tokens were made stale. */
      readonly accessTokens?: "refresh";
    })
  | (OfSession & {
      readonly event: "authn_token_reuse";
      /** Two clients hold the token: it was issued before the session was bound to a key, and its presenter has never had that key. */
      readonly cause?: "two_holders";
      readonly happenedAt?: StoreMs;
    })
  /** Claims or audiences of a session were replaced, or its older access tokens were made stale. */
  | (OfSession & {
      readonly event: "session_updated";
      readonly version: number;
      readonly fields: readonly ("claims" | "audiences")[];
      readonly accessTokens: "keep" | "refresh";
    })
  /** A device key was registered. The session is bound to it from its first use. */
  | (DeviceOfSession & { readonly event: "device_registered" })
  /** A key (of a device, or DPoP) was used for the first time: from now on, a refresh of the session needs this key. */
  | (DeviceOfSession & { readonly event: "device_bound" })
  | (OfSession & { readonly event: "device_renewed" })
  /** The registration of a device key was refused: the session has another key, or the refresh token is outdated. */
  | {
      readonly event: "device_key_refused";
      readonly sid: SessionId;
      readonly thumbprint: string;
      readonly reason: "other_key" | "outdated";
    }
  | {
      readonly event: "device_proof_refused";
      readonly sid: SessionId;
      readonly operation: string;
      readonly reason: DeviceRefusalReason | KeyProofRefusal;
    }
  /** A session that is bound to a device key was refreshed without a fresh device cookie of the key. Its refresh token may be a copy. */
  | (OfSession & { readonly event: "device_proof_missing" })
  /** A refresh came without a fresh device cookie. The browser reported that it could not renew the cookie, and must try again. */
  | (OfSession & { readonly event: "device_renewal_skipped" })
  /** A session that is bound to a key was refreshed or logged out without a proof of the key. Its token may be a copy. */
  | (OfSession & {
      readonly event: "bound_key_missing";
      readonly operation: "refresh" | "logout";
      readonly reason: UnprovenReason;
    })
  | (OfSession & { readonly event: "device_unbound" })
  | {
      readonly event: "authn_failed";
      readonly operation: string;
      readonly reason: RefusalReason;
      readonly sid?: SessionId | undefined;
      /** Present if the refused credential was meant for the admin API. */
      readonly admin?: true;
    }
  /** A valid credential of the admin API was used outside its scopes. */
  | { readonly event: "authz_failed"; readonly operation: string; readonly scope: Scope }
  /** An operator, or the receiver, has changed a subscription of signals. */
  | {
      readonly event: "subscription_changed";
      readonly subscription: string;
      readonly change: "created" | "updated" | "deleted" | "paused" | "resumed" | "disabled";
    }
  /** An operator has sent a signal to test a subscription. `error` says why the receiver did not accept it. */
  | { readonly event: "subscription_tested"; readonly subscription: string; readonly error?: string }
  | {
      readonly event: "rate_limited";
      readonly limit: RateLimitName;
      readonly sid?: SessionId | undefined;
      readonly subject?: string | undefined;
      readonly actor?: string | undefined;
    };

type OfSession = {
  readonly sid: SessionId;
  readonly subject: string;
  /** Who uses the session in place of its subject, or has caused the event in the subject's name. */
  readonly actor?: string | undefined;
};

export function namesOf({ sid, subject, actor }: Pick<Session, "sid" | "subject" | "actor">): OfSession {
  return actor === undefined ? { sid, subject } : { sid, subject, actor: actor.subject };
}

type DeviceOfSession = OfSession & {
  readonly algorithm: DeviceBinding["key"]["algorithm"];
  /** The thumbprint of RFC 7638, base64url. */
  readonly thumbprint: string;
};

/** Why a proof of possession was refused, as a closed list. */
export type DeviceRefusalReason =
  | DeviceProofRefusal
  | `challenge_${Extract<DeviceChallengeCheck, { readonly ok: false }>["reason"]}`;

/** The id of a request, and the id of the trace that the request belongs to. */
export type Correlation = { readonly requestId: string; readonly traceId?: string };

/** The origin of the request that an event belongs to. */
export interface Requester {
  /** Returns the network address that the request came from, if it is known. It is called only when an event is recorded. */
  address(): string | undefined;
  /** Returns the header `User-Agent` as it was sent, with any characters and of any length. */
  userAgent?(): string | undefined;
  /** The name of the credential with which the request called the admin API. */
  readonly adminName: string | undefined;
  /** The client whose sessions that credential may receive signals of; absent for those of all clients. */
  readonly adminClientId?: string | undefined;
  /** Returns the ids under which the logs and traces of the request are found. It is called only when an event is recorded. */
  correlation?(): Correlation;
}

export const UNKNOWN_REQUESTER: Requester = { address: () => undefined, adminName: undefined };

export type Audit = (event: AuditEvent, requester: Requester) => void;
