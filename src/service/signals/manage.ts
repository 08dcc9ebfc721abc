/** The operations of an operator on subscriptions. */
import { randomBytes } from "node:crypto";
import type { Audit, Requester } from "../session/audit.ts";
import { invalidRequest, ServiceError } from "../session/errors.ts";
import type { SessionId } from "../session/model.ts";
import type { RateLimit, SessionStore } from "../session/ports.ts";
import { toWallClock, type WallClock, type WallMs } from "../session/time.ts";
import { type AttemptDeps, attempt, isPushed } from "./delivery/attempt.ts";
import type { PushKind } from "./kinds/request.ts";
import { parseWebhookSecrets } from "./kinds/webhook.ts";
import {
  type DeliveryError,
  MAX_SUBSCRIPTIONS,
  noticesOf,
  SIGNAL_EVENTS,
  type SignalFilter,
  type SignalNotice,
  type Subscription,
  type SubscriptionState,
} from "./model.ts";
import type { SignalLog, SubscriptionStore } from "./ports.ts";
import { parseTarget, type TargetRules } from "./send/target.ts";
import { isStream } from "./streams/configuration.ts";
import { announceChange, pushHeld } from "./streams/stream-events.ts";

export type ManagementDeps = AttemptDeps & {
  readonly subscriptions: SubscriptionStore;
  readonly seal: (secret: string) => string;
  readonly targets: TargetRules;
  readonly audit: Audit;
  readonly wallClock: WallClock;
  /** Returns the algorithms by which keys of the service sign now. */
  readonly signingAlgs: () => readonly string[];
};

/** What is needed to determine how late signals are. */
export type OversightDeps = {
  readonly subscriptions: SubscriptionStore;
  readonly log: Pick<SignalLog, "oldestWaiting">;
  readonly store: Pick<SessionStore, "shiftMs">;
};

export type NewSubscription = {
  readonly kind: PushKind;
  readonly endpoint: string;
  readonly filter: SignalFilter;
  readonly audience: readonly string[];
  /** The secret; empty for none. A webhook without one gets a generated secret. */
  readonly secret: string;
  /** The algorithm that signs the tokens; empty for the one that the kind has by default. */
  readonly signingAlg: string;
};

const ID_BYTES = 8;
const SECRET_BYTES = 32;
const SESSION_ID_BYTES = 17;

/** Creates a subscription. `generatedSecret` is empty unless a secret was made. @throws ServiceError */
export async function createSubscription(
  deps: ManagementDeps,
  wanted: NewSubscription,
  requester: Requester,
): Promise<{ readonly subscription: Subscription; readonly generatedSecret: string }> {
  const { kind, endpoint, filter, audience, signingAlg } = wanted;
  if (parseTarget(endpoint, deps.targets) === undefined) throw invalidRequest("endpoint", "is not an allowed URL");
  checkAudience(kind, audience);
  checkEvents(kind, filter);
  if (signingAlg !== "") checkSigningAlg(kind, signingAlg, deps.signingAlgs());
  const generatedSecret =
    kind === "webhook" && wanted.secret === "" ? `whsec_${randomBytes(SECRET_BYTES).toString("base64")}` : "";
  const secret = wanted.secret || generatedSecret;
  checkSecret(kind, secret);
  const id = randomBytes(ID_BYTES).toString("hex");
  const sealed = secret === "" ? {} : { sealedSecret: deps.seal(secret) };
  const definition = { kind, endpoint, filter, audience, ...sealed, ...(signingAlg !== "" && { signingAlg }) };
  if (!(await deps.subscriptions.create(id, definition, deps.wallClock()))) {
    throw invalidRequest("", `there are ${MAX_SUBSCRIPTIONS} subscriptions, and there may be no more`);
  }
  deps.audit({ event: "subscription_changed", subscription: id, change: "created" }, requester);
  return { subscription: await getSubscription(deps, id), generatedSecret };
}

/** Returns a subscription. @throws ServiceError if it does not exist */
export async function getSubscription(
  { subscriptions }: Pick<ManagementDeps, "subscriptions">,
  id: string,
): Promise<Subscription> {
  const subscription = await subscriptions.get(id);
  if (subscription === undefined) throw new ServiceError("E404_NOT_FOUND");
  return subscription;
}

export type Overseen = {
  readonly subscription: Subscription;
  readonly condition: "active" | "failing" | "paused";
  /** When the session of the oldest undelivered signal ended; undefined if all are delivered. */
  readonly oldestWaitingAt: WallMs | undefined;
  /** How many log entries follow the subscription's cursor. Its filter may exclude some of them. */
  readonly waiting: number;
};

/** Returns all subscriptions, or only `id`, each with the signal that has waited longest. @throws ServiceError if `id` does not exist */
export async function overseeSubscriptions(deps: OversightDeps, id?: string): Promise<readonly Overseen[]> {
  const { subscriptions, log, store } = deps;
  const listed = id === undefined ? await subscriptions.list() : [await getSubscription(deps, id)];
  // The log need not be read if nobody reads it.
  const waiting = listed.length === 0 ? new Map<string, never>() : await log.oldestWaiting();
  return listed.map((subscription) => {
    const first = waiting.get(subscription.id);
    const oldestWaitingAt = first && toWallClock(first.happenedAt, store.shiftMs({ sid: first.sessionId }));
    return { subscription, condition: conditionOf(subscription), oldestWaitingAt, waiting: first?.count ?? 0 };
  });
}

/** A single failure is retried within a second, and is not yet a failing receiver. */
function conditionOf({ state, failures }: Subscription): Overseen["condition"] {
  if (state === "paused") return "paused";
  return failures > 1 ? "failing" : "active";
}

export async function deleteSubscription(deps: ManagementDeps, id: string, requester: Requester): Promise<void> {
  if (!(await deps.subscriptions.delete(id))) return;
  deps.audit({ event: "subscription_changed", subscription: id, change: "deleted" }, requester);
}

/** Pauses or resumes a subscription. @throws ServiceError if it does not exist */
export async function setSubscriptionState(
  deps: ManagementDeps,
  id: string,
  change: "paused" | "resumed",
  requester: Requester,
): Promise<Subscription> {
  const before = await getSubscription(deps, id);
  // A resumed stream gets the status that its receiver asked for.
  const wanted = change === "resumed" ? before.stream?.wanted : undefined;
  const because = change === "paused" ? "operator" : wanted === "paused" ? "receiver" : wanted;
  const state: SubscriptionState = because === undefined ? { state: "active" } : { state: "paused", because };
  if (isStream(before) && wanted === undefined) await announceChange(deps, before, change);
  if (!(await deps.subscriptions.setState(id, state))) throw new ServiceError("E404_NOT_FOUND");
  deps.audit({ event: "subscription_changed", subscription: id, change }, requester);
  if (isStream(before) && state.state === "active") await pushHeld(deps, id);
  return getSubscription(deps, id);
}

/**
 * Sends one signal for a session that never existed. Returns why the receiver did not accept the signal, or undefined if it did.
 * @throws ServiceError if the receiver was tested too often
 */
export async function testSubscription(
  deps: ManagementDeps & { readonly testLimit: RateLimit },
  id: string,
  requester: Requester,
): Promise<DeliveryError | undefined> {
  const subscription = await getSubscription(deps, id);
  if (!isPushed(subscription)) throw invalidRequest("subscription_id", "is polled by its receiver");
  // The limit is that of the receiving server: its paths and queries are as many as an operator makes up.
  if (deps.testLimit.take(new URL(subscription.endpoint).origin) !== undefined)
    throw new ServiceError("E429_RATE_LIMITED");
  const sessionId = randomBytes(SESSION_ID_BYTES).toString("base64url") as SessionId;
  const { filter } = subscription;
  const reason = filter.events?.includes(SIGNAL_EVENTS.ended) ? "logout" : (noticesOf(filter)[0] ?? "logout");
  // Only an update is sent with the version.
  const signal = { id: randomBytes(16).toString("base64url"), sessionId, reason, version: 1 } as const;
  const { error } = await attempt(deps, subscription, { ...signal, happenedAt: deps.wallClock() });
  deps.audit({ event: "subscription_tested", subscription: id, ...(error !== undefined && { error }) }, requester);
  return error;
}

function checkEvents(kind: PushKind, filter: SignalFilter): void {
  const isSent = (notice: SignalNotice) => kind === "webhook" || (kind === "ssf_push" && notice !== "new_device");
  const other = noticesOf(filter).find((notice) => !isSent(notice));
  if (other !== undefined) throw invalidRequest("filter.events", `${SIGNAL_EVENTS[other]} is not sent to this kind`);
}

function checkAudience(kind: PushKind, audience: readonly string[]): void {
  if (kind === "webhook" && audience.length > 0) throw invalidRequest("audience", "is not for webhooks");
  if (kind === "webhook") return;
  if (audience.length === 0) throw invalidRequest("audience", "is required");
  if (audience.some((one) => one === "" || one.length > 255)) {
    throw invalidRequest("audience", "has an entry that is empty or longer than 255 characters");
  }
}

function checkSigningAlg(kind: PushKind, alg: string, offered: readonly string[]): void {
  if (kind === "webhook") throw invalidRequest("signing_alg", "is not for webhooks");
  if (!offered.includes(alg))
    throw invalidRequest("signing_alg", `is none of ${offered.join(", ")}, by which keys sign`);
}

function checkSecret(kind: PushKind, secret: string): void {
  if (kind === "backchannel" && secret !== "") throw invalidRequest("secret", "is not for back-channel logout");
  if (kind === "ssf_push" && !/^[\x20-\x7e]*$/.test(secret)) throw invalidRequest("secret", "is not a header's value");
  if (kind !== "webhook") return;
  try {
    parseWebhookSecrets(secret);
  } catch {
    // The original error is left out, because its text may quote the secret.
    throw invalidRequest("secret", "is not a list of secrets of Standard Webhooks");
  }
}
