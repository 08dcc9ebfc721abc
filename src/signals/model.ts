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
  /** Subjects that are left out. */
  readonly exceptSubjects?: readonly string[];
};

/** Returns whether a filter lets a signal through. */
export function passes(signal: Signal, { subject, clientId, reasons, exceptSubjects }: SignalFilter): boolean {
  if (subject !== undefined && signal.subject !== subject) return false;
  if (clientId !== undefined && signal.clientId !== clientId) return false;
  if (signal.subject !== undefined && exceptSubjects?.includes(signal.subject)) return false;
  return reasons === undefined || reasons.includes(signal.reason);
}

/** What a subscription of SSF has because its receiver manages it, as a stream (streams/). */
export type StreamSettings = {
  /** The name of the credential that has created the stream. Other credentials do not see it. */
  readonly owner: string;
  readonly description?: string;
  /** Absent if the receiver wants every type. */
  readonly eventsRequested?: readonly string[];
  /** The status that the receiver has asked for; absent: enabled. When an operator resumes a stream, it gets this status. */
  readonly wanted?: "paused" | "disabled";
  /** Why its receiver has changed the status, in its own words. */
  readonly statusReason?: string;
  /** Events about the stream itself that a receiver by poll has not acknowledged. */
  readonly pending?: readonly PendingEvent[];
};

export type StreamStatus = "enabled" | "paused" | "disabled";

/** An event about a stream itself (SSF 1.0 sections 8.1.4.1 and 8.1.5). */
export type StreamEvent =
  | { readonly type: "verification"; readonly state?: string }
  | { readonly type: "stream-updated"; readonly status: StreamStatus; readonly reason?: string };

export type PendingEvent = { readonly id: string; readonly createdAt: WallMs; readonly event: StreamEvent };

/** What an operator or a receiver defines. It is replaced as a whole. */
export type SubscriptionDefinition = {
  readonly kind: SubscriptionKind;
  /** The URL that receives; absent for `ssf_poll`, whose receivers ask. */
  readonly endpoint?: string;
  /** Sealed by the key ring; absent where the kind needs none. It is never shown. */
  readonly sealedSecret?: string;
  readonly filter: SignalFilter;
  /** The `aud` of signed signals; empty for webhooks. */
  readonly audience: readonly string[];
  /** Present if a receiver manages it. */
  readonly stream?: StreamSettings;
};

/** Why nothing is delivered: an operator paused it, it failed for a day, or the receiver asked for it; `disabled`: nothing is kept, either. */
export type PauseReason = "operator" | "failing" | "receiver" | "disabled";

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

/** A subscription without what is counted. */
export type KnownSubscription = SubscriptionDefinition & SubscriptionState & { readonly id: string };

export type Subscription = KnownSubscription & {
  readonly createdAt: WallMs;
  /** Failed attempts in a row. */
  readonly failures: number;
  readonly lastError?: DeliveryError;
  readonly lastErrorAt?: WallMs;
  /** Signals that the receiver has accepted, and those that were given up. */
  readonly delivered: number;
  readonly deadLetters: number;
};

/** What a store adds to the definition of a subscription. */
const STATUS = [
  "id",
  "createdAt",
  "state",
  "because",
  "failures",
  "lastError",
  "lastErrorAt",
  "delivered",
  "deadLetters",
];

/** Returns the definition of a subscription, with the same JSON text as the one that is stored. */
export function definitionOf(subscription: KnownSubscription): SubscriptionDefinition {
  const entries = Object.entries(subscription).filter(([name]) => !STATUS.includes(name));
  return Object.fromEntries(entries) as SubscriptionDefinition;
}

/** Subscriptions that a store holds at the most. */
export const MAX_SUBSCRIPTIONS = 256;
