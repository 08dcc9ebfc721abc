/**
 * The model of signals: what reports that a session ended to those who do not watch the feed. Plain data, as in the model of sessions.
 */
import { hash } from "node:crypto";
import type { EndReason, SessionId } from "../session/model.ts";
import type { StoreMs, WallMs } from "../session/time.ts";

/** Why a session ended. `revoked_all`: it ended with all others (RevokeAllSessions). */
export type SignalReason = EndReason | "revoked_all";

/** The end of one session. Whoever creates it twice, for example after a crash, creates it with the same id. */
export type Signal = {
  /** 22 characters of base64url: see `signalId`. Receivers recognise a repeated delivery by it. */
  readonly id: string;
  readonly sessionId: SessionId;
  /** Absent where the store had lost the session before it ended. */
  readonly subject?: string;
  /** Absent where the session has no client, or the store had lost it. */
  readonly clientId?: string;
  readonly reason: SignalReason;
  /** The time in the part of the store that had the session. It is converted where the signal is sent (time.ts). */
  readonly endedAt: StoreMs;
};

/** Returns the id of a signal, which depends on nothing but the ending. */
export function signalId({ sessionId, reason, endedAt }: Omit<Signal, "id">): string {
  return hash("sha256", `${sessionId} ${reason} ${endedAt}`, "base64url").slice(0, 22);
}

export type SubscriptionKind = "webhook" | "backchannel" | "ssf_push" | "ssf_poll";

/** Which endings a subscription is about. An absent part allows all. */
export type SignalFilter = {
  readonly subject?: string;
  readonly clientId?: string;
  readonly reasons?: readonly SignalReason[];
};

/** Returns whether a filter lets a signal through. */
export function passes(signal: Signal, { subject, clientId, reasons }: SignalFilter): boolean {
  if (subject !== undefined && signal.subject !== subject) return false;
  if (clientId !== undefined && signal.clientId !== clientId) return false;
  return reasons === undefined || reasons.includes(signal.reason);
}

/** What an operator defines. It is replaced as a whole. */
export type SubscriptionDefinition = {
  readonly kind: SubscriptionKind;
  /** The URL that receives; absent for `ssf_poll`, whose receivers ask. */
  readonly endpoint?: string;
  /** Sealed by the key ring; absent where the kind needs none. It is never shown. */
  readonly sealedSecret?: string;
  readonly filter: SignalFilter;
  /** The `aud` of signed signals; empty for webhooks. */
  readonly audience: readonly string[];
};

/** Why nothing is delivered: an operator paused it, it failed for a day, or the receiver asked for it. */
export type PauseReason = "operator" | "failing" | "receiver";

export type SubscriptionState =
  | { readonly state: "active" }
  | { readonly state: "paused"; readonly because: PauseReason };

/** Why a delivery failed. A closed list: a receiver's text is never kept. */
export type DeliveryError =
  | "address_refused"
  | "unreachable"
  | "tls"
  | "timeout"
  | "redirected"
  | "refused"
  | "server_error"
  | "too_large"
  | "invalid_response"
  | "behind_retention";

export type Subscription = SubscriptionDefinition &
  SubscriptionState & {
    readonly id: string;
    readonly createdAt: WallMs;
    /** Failed attempts in a row. */
    readonly failures: number;
    readonly lastError?: DeliveryError;
    readonly lastErrorAt?: WallMs;
    /** Signals that the receiver has accepted, and those that were given up. */
    readonly delivered: number;
    readonly deadLetters: number;
  };

/** Subscriptions that a store holds at the most. */
export const MAX_SUBSCRIPTIONS = 256;
