/** auth.admin.v1.SignalsAdminService: converts between its messages and the operations on subscriptions. */
import type { ServiceImpl } from "@connectrpc/connect";
import {
  type CreateSubscriptionRequest,
  type SignalsAdminService,
  type SubscriptionFilter,
  SubscriptionKind,
} from "../../../../gen/auth/admin/v1/signals_admin_pb.ts";
import type { Requester } from "../../session/audit.ts";
import { invalidRequest } from "../../session/errors.ts";
import type { RateLimit } from "../../session/ports.ts";
import { isSignalReason } from "../../signals/kinds/ssf.ts";
import * as manage from "../../signals/manage.ts";
import { SIGNAL_EVENTS, type SignalEvent, type SignalFilter, type Subscription } from "../../signals/model.ts";
import { nameOf, numberOf } from "../messages.ts";
import { requestContextOf } from "../request-context.ts";
import { wallTime } from "../times.ts";

export function signalsAdminService(
  deps: manage.ManagementDeps & manage.OversightDeps & { readonly testLimit: RateLimit },
): ServiceImpl<typeof SignalsAdminService> {
  const changed = async (...[id, change, requester]: [string, "paused" | "resumed", Requester]) => ({
    subscription: subscriptionMessage(await manage.setSubscriptionState(deps, id, change, requester)),
  });
  return {
    async createSubscription(request, context) {
      const created = await manage.createSubscription(deps, wantedOf(request), requestContextOf(context));
      const { subscription, generatedSecret } = created;
      return { subscription: subscriptionMessage(subscription), generatedSecret };
    },
    async getSubscription({ subscriptionId }) {
      const [overseen] = await manage.overseeSubscriptions(deps, subscriptionId);
      return overseen === undefined ? {} : { subscription: overseenMessage(overseen) };
    },
    async listSubscriptions() {
      return { subscriptions: (await manage.overseeSubscriptions(deps)).map(overseenMessage) };
    },
    async deleteSubscription({ subscriptionId }, context) {
      await manage.deleteSubscription(deps, subscriptionId, requestContextOf(context));
      return {};
    },
    pauseSubscription: ({ subscriptionId }, context) => changed(subscriptionId, "paused", requestContextOf(context)),
    resumeSubscription: ({ subscriptionId }, context) => changed(subscriptionId, "resumed", requestContextOf(context)),
    async testSubscription({ subscriptionId }, context) {
      const error = await manage.testSubscription(deps, subscriptionId, requestContextOf(context));
      return { accepted: error === undefined, error: error ?? "" };
    },
  };
}

function wantedOf(request: CreateSubscriptionRequest): manage.NewSubscription {
  const { kind, endpoint, filter, audience, secret, signingAlg } = request;
  const pushKind = nameOf(SubscriptionKind, kind);
  // Operators cannot create polls: a receiver that polls creates its stream itself.
  if (pushKind === undefined || pushKind === "ssf_poll") throw invalidRequest("kind", "is not a kind");
  return {
    kind: pushKind,
    endpoint,
    audience,
    secret,
    signingAlg,
    filter: filter === undefined ? {} : filterOf(filter),
  };
}

function filterOf({ subject, clientId, reasons, events }: SubscriptionFilter): SignalFilter {
  if (!events.every(isEvent))
    throw invalidRequest("filter.events", `has an entry that is none of ${EVENTS.join(", ")}`);
  if (!reasons.every(isSignalReason)) throw invalidRequest("filter.reasons", "has an entry that is not a reason");
  return {
    ...(subject !== "" && { subject }),
    ...(clientId !== "" && { clientId }),
    ...(reasons.length > 0 && { reasons }),
    ...(events.length > 0 && { events }),
  };
}

const EVENTS: readonly string[] = Object.values(SIGNAL_EVENTS);

function isEvent(text: string): text is SignalEvent {
  return EVENTS.includes(text);
}

function overseenMessage({ subscription, oldestWaitingAt }: manage.Overseen) {
  const message = subscriptionMessage(subscription);
  return oldestWaitingAt === undefined ? message : { ...message, oldestWaitingTime: wallTime(oldestWaitingAt) };
}

/** Returns a subscription without its secret. */
function subscriptionMessage(subscription: Subscription) {
  const { id, kind, endpoint, filter, audience, createdAt, failures, delivered, deadLetters } = subscription;
  const { subject = "", clientId = "", reasons = [], events = [] } = filter;
  return {
    subscriptionId: id,
    kind: numberOf(SubscriptionKind, kind),
    endpoint: endpoint ?? "",
    filter: { subject, clientId, reasons: [...reasons], events: [...events] },
    audience: [...audience],
    signingAlg: subscription.signingAlg ?? "",
    createTime: wallTime(createdAt),
    pausedBecause: subscription.state === "paused" ? subscription.because : "",
    failures,
    lastError: subscription.lastError ?? "",
    ...(subscription.lastErrorAt !== undefined && { lastErrorTime: wallTime(subscription.lastErrorAt) }),
    delivered: BigInt(delivered),
    deadLetters: BigInt(deadLetters),
  };
}
