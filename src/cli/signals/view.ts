import { toJson } from "@bufbuild/protobuf";
import type { Timestamp } from "@bufbuild/protobuf/wkt";
import {
  type Subscription,
  SubscriptionKind,
  SubscriptionSchema,
} from "../../../gen/auth/admin/v1/signals_admin_pb.ts";
import { fields, table } from "../output/table.ts";
import { moment, relative, shownAt } from "../output/times.ts";
import { KIND_NAMES, type KindName } from "./kinds.ts";

export const KINDS: Readonly<Record<KindName, SubscriptionKind>> = {
  webhook: SubscriptionKind.WEBHOOK,
  backchannel: SubscriptionKind.BACKCHANNEL,
  ssf_push: SubscriptionKind.SSF_PUSH,
};

export const subscriptionAsJson = (subscription: Subscription) => toJson(SubscriptionSchema, subscription);

/** The kind of a polled stream. Only a receiver can create one, so the command line does not offer it. */
const STREAM_BY_POLL = "ssf_poll";

/** Returns the name of a kind; for a kind that this version does not know, its number. */
const nameOfKind = (kind: SubscriptionKind) =>
  kind === SubscriptionKind.SSF_POLL
    ? STREAM_BY_POLL
    : (KIND_NAMES.find((name) => KINDS[name] === kind) ?? String(kind));

const stateOf = ({ pausedBecause }: Subscription) => (pausedBecause === "" ? "active" : `paused: ${pausedBecause}`);

export function subscriptionTable(subscriptions: readonly Subscription[], nowMs: number): string {
  const rows = subscriptions.map((one) => [
    one.subscriptionId,
    nameOfKind(one.kind),
    stateOf(one),
    String(one.delivered),
    String(one.deadLetters),
    shownAt(one.oldestWaitingTime, (ms) => relative(ms, nowMs)),
    String(one.failures),
    [one.lastError, shownAt(one.lastErrorTime, (ms) => relative(ms, nowMs))].filter((part) => part !== "").join(" "),
    one.endpoint,
  ]);
  const heading = [
    "subscription",
    "kind",
    "state",
    "delivered",
    "given up",
    "waiting since",
    "failures",
    "last error",
    "endpoint",
  ];
  return table([heading, ...rows]);
}

/** Returns the fields of a subscription for people. @param secret the secret of a new webhook; empty otherwise */
export function subscriptionFields(subscription: Subscription, nowMs: number, secret = ""): string {
  const { filter, lastError, lastErrorTime } = subscription;
  const when = (time: Timestamp | undefined) => shownAt(time, (ms) => moment(ms, nowMs));
  return fields([
    ["subscription", subscription.subscriptionId],
    ["kind", nameOfKind(subscription.kind)],
    ["endpoint", subscription.endpoint],
    ["audience", subscription.audience.join(", ")],
    ["subject", filter?.subject ?? ""],
    ["client", filter?.clientId ?? ""],
    ["reasons", filter?.reasons.join(", ") ?? ""],
    ["created", when(subscription.createTime)],
    ["state", stateOf(subscription)],
    ["delivered", String(subscription.delivered)],
    ["given up", String(subscription.deadLetters)],
    ["waiting since", when(subscription.oldestWaitingTime)],
    ["failures in a row", String(subscription.failures)],
    ["last error", lastError],
    ["failed", when(lastErrorTime)],
    ["secret", secret],
  ]);
}
