/**
 * The model of signals, as plain data. A signal tells receivers that do not watch the revocation feed that a session has ended; those that
 * ask for it also learn that one was created.
 */
import { hash } from "node:crypto";
import type { EndReason, SessionId } from "../session/model.ts";
import type { StoreMs, WallMs } from "../session/time.ts";

/** Why a session ended. `revoked_all`: all sessions ended (RevokeAllSessions). */
export type SignalReason = EndReason | "revoked_all";

/**
 * What a signal reports beside endings. `new_device`: the session's user agent is one that its subject had no live session with. `updated`:
 * the claims or audiences of its access tokens are others.
 */
const NOTICES = ["created", "new_device", "updated"] as const;
export type SignalNotice = (typeof NOTICES)[number];

/** What a subscription may ask for. Without a choice it gets endings alone. */
export const SIGNAL_EVENTS = {
  ended: "session.ended",
  created: "session.created",
  new_device: "session.new_device",
  updated: "session.updated",
} as const satisfies Record<SignalNotice | "ended", string>;
export type SignalEvent = (typeof SIGNAL_EVENTS)[keyof typeof SIGNAL_EVENTS];

/** The end, the creation or an update of one session. If its signal is created twice, for example after a crash, both have the same id. */
export type Signal = {
  /** 22 characters of base64url (see `signalId`), by which receivers recognise a repeated delivery. */
  readonly id: string;
  readonly sessionId: SessionId;
  /** Absent if the store had lost the session before it ended. */
  readonly subject?: string;
  /** Who used the session in place of its subject; absent if the subject did. */
  readonly actor?: string;
  /** Absent if the session has no client, or the store had lost it. */
  readonly clientId?: string;
  readonly reason: SignalReason | SignalNotice;
  /** The version of the session; present only if it was updated. */
  readonly version?: number;
  /** When that happened, in the store's time. It is converted to the wall clock when the signal is sent (session/time.ts). */
  readonly happenedAt: StoreMs;
};

/** Returns the id of a signal, which depends only on what happened. */
export function signalId({ sessionId, reason, version, happenedAt }: Omit<Signal, "id">): string {
  const what = version === undefined ? reason : `${reason}:${version}`;
  return hash("sha256", `${sessionId} ${what} ${happenedAt}`, "base64url").slice(0, 22);
}

export type SubscriptionKind = "webhook" | "backchannel" | "ssf_push" | "ssf_poll";

export function eventOf({ reason }: Pick<Signal, "reason">): SignalEvent {
  return isNotice(reason) ? SIGNAL_EVENTS[reason] : SIGNAL_EVENTS.ended;
}

function isNotice(reason: Signal["reason"]): reason is SignalNotice {
  return (NOTICES as readonly string[]).includes(reason);
}

/** Selects the signals that a subscription wants. An absent field allows all values, but for `events`. */
export type SignalFilter = {
  readonly subject?: string;
  readonly clientId?: string;
  readonly reasons?: readonly SignalReason[];
  readonly exceptSubjects?: readonly string[];
  /** Absent for endings alone. Reasons select among those. */
  readonly events?: readonly SignalEvent[];
};

export function noticesOf({ events = [] }: SignalFilter): readonly SignalNotice[] {
  return NOTICES.filter((notice) => events.includes(SIGNAL_EVENTS[notice]));
}

export function passes(signal: Signal, { subject, clientId, reasons, exceptSubjects, events }: SignalFilter): boolean {
  const event = eventOf(signal);
  if (events === undefined ? event !== SIGNAL_EVENTS.ended : !events.includes(event)) return false;
  if (subject !== undefined && signal.subject !== subject) return false;
  if (clientId !== undefined && signal.clientId !== clientId) return false;
  if (signal.subject !== undefined && exceptSubjects?.includes(signal.subject)) return false;
  return reasons === undefined || isNotice(signal.reason) || reasons.includes(signal.reason);
}

/** The settings of an SSF subscription that its receiver manages as a stream (streams/). */
export type StreamSettings = {
  /** The name of the credential that created the stream. Other credentials do not see the stream. */
  readonly owner: string;
  readonly description?: string;
  /** Absent if the receiver wants all types of events. */
  readonly eventsRequested?: readonly string[];
  /** The status that the receiver has asked for; absent means enabled. A stream gets this status when an operator resumes it. */
  readonly wanted?: "paused" | "disabled";
  /** Why the receiver has changed the status, in the receiver's own words. */
  readonly statusReason?: string;
  /** Events about the stream itself that a polling receiver has not acknowledged yet. */
  readonly pending?: readonly PendingEvent[];
};

export type StreamStatus = "enabled" | "paused" | "disabled";

/** An event about a stream itself (SSF 1.0 sections 8.1.4.1 and 8.1.5). */
export type StreamEvent =
  | { readonly type: "verification"; readonly state?: string }
  | { readonly type: "stream-updated"; readonly status: StreamStatus; readonly reason?: string };

export type PendingEvent = { readonly id: string; readonly createdAt: WallMs; readonly event: StreamEvent };

/** The part of a subscription that an operator or a receiver defines. It is replaced as a whole. */
export type SubscriptionDefinition = {
  readonly kind: SubscriptionKind;
  /** The URL of the receiver; absent for `ssf_poll`, whose receivers poll. */
  readonly endpoint?: string;
  /** The secret, encrypted with the key ring; absent if the kind needs none. No response contains it. */
  readonly sealedSecret?: string;
  readonly filter: SignalFilter;
  /** The `aud` of signed signals; empty for webhooks. */
  readonly audience: readonly string[];
  /** The algorithm that signs the tokens; absent if none was chosen. */
  readonly signingAlg?: string;
  /** Present if a receiver manages the subscription. */
  readonly stream?: StreamSettings;
};

/** Why nothing is delivered. `failing`: deliveries have failed for a day. `disabled`: the receiver wants no signals to be kept. */
export type PauseReason = "operator" | "failing" | "receiver" | "disabled";

export type SubscriptionState =
  | { readonly state: "active" }
  | { readonly state: "paused"; readonly because: PauseReason };

/** Why a delivery failed. The list is closed: the text of a receiver is never stored. */
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

export type KnownSubscription = SubscriptionDefinition & SubscriptionState & { readonly id: string };

export type Subscription = KnownSubscription & {
  readonly createdAt: WallMs;
  readonly failures: number;
  readonly lastError?: DeliveryError;
  readonly lastErrorAt?: WallMs;
  /** How many signals the receiver has accepted, and how many were given up. */
  readonly delivered: number;
  readonly deadLetters: number;
};

/** The fields that a store adds to the definition of a subscription. */
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

/** Returns the definition of a subscription. Its JSON text is the same as that of the stored definition. */
export function definitionOf(subscription: KnownSubscription): SubscriptionDefinition {
  const entries = Object.entries(subscription).filter(([name]) => !STATUS.includes(name));
  return Object.fromEntries(entries) as SubscriptionDefinition;
}

export const MAX_SUBSCRIPTIONS = 256;
