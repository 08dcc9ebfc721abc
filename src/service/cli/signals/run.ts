import { toJson } from "@bufbuild/protobuf";
import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { Code } from "@connectrpc/connect";
import {
  CreateSubscriptionResponseSchema,
  type Subscription,
  SubscriptionKind,
  SubscriptionSchema,
  TestSubscriptionResponseSchema,
} from "../../../../gen/auth/admin/v1/signals_admin_pb.ts";
import { type AdminApi, openAdminApi } from "../admin-api/client.ts";
import type { CallFailure } from "../admin-api/failure.ts";
import type { CallOptions } from "../admin-api/options.ts";
import { CommandError, type Context } from "../context.ts";
import { readText, requireOneInput } from "../input.ts";
import { fields, table } from "../output/text.ts";
import { moment, relative, shownAt } from "../output/times.ts";

type SubscriptionOptions = CallOptions & {
  readonly kind: keyof typeof SUBSCRIPTION_KINDS;
  readonly audience?: string[];
  readonly signingAlg?: string;
  readonly subject?: string;
  readonly clientId?: string;
  readonly reason?: string[];
  readonly event?: string[];
  readonly secretFile?: string;
};

export async function listSubscriptions(context: Context, options: CallOptions): Promise<void> {
  const { subscriptions } = await call(context, options, (api) => api.listSubscriptions({}));
  if (options.json) context.print(JSON.stringify({ subscriptions: subscriptions.map(subscriptionAsJson) }));
  else if (subscriptions.length > 0) context.print(subscriptionTable(subscriptions, Date.now()));
  else context.note("no subscription");
}

export async function createSubscription(
  context: Context,
  endpoint: string,
  options: SubscriptionOptions,
): Promise<void> {
  const { kind, audience = [], signingAlg = "", subject = "", clientId = "", reason = [], event = [] } = options;
  const { secretFile, tokenFile } = options;
  requireOneInput("secret", secretFile, tokenFile);
  const secret = secretFile === undefined ? "" : readText(secretFile).trim();
  const filter = { subject, clientId, reasons: reason, events: event };
  const request = { kind: SUBSCRIPTION_KINDS[kind], endpoint, audience, signingAlg, filter, secret };
  const created = await call(context, options, (api) => api.createSubscription(request));
  if (options.json) return context.print(JSON.stringify(toJson(CreateSubscriptionResponseSchema, created)));
  const { subscription, generatedSecret } = created;
  if (subscription === undefined) return;
  context.print(subscriptionFields(subscription, Date.now(), generatedSecret));
  if (generatedSecret !== "") context.note("the secret is not shown again: give it to the receiver now");
}

type CommandOfOne = (context: Context, subscriptionId: string, options: CallOptions) => Promise<void>;

type Response = { readonly subscription?: Subscription | undefined };

/** Makes a command that prints the subscription in the response of a method. */
const printing =
  (method: "getSubscription" | "pauseSubscription" | "resumeSubscription"): CommandOfOne =>
  async (context, subscriptionId, options) => {
    const { subscription } = await call<Response>(context, options, (api) => api[method]({ subscriptionId }));
    if (subscription === undefined) return;
    if (options.json) context.print(JSON.stringify(subscriptionAsJson(subscription)));
    else context.print(subscriptionFields(subscription, Date.now()));
  };

export const COMMANDS_OF_ONE = {
  show: printing("getSubscription"),
  pause: printing("pauseSubscription"),
  resume: printing("resumeSubscription"),
  async delete(context, subscriptionId, options) {
    await call(context, options, (api) => api.deleteSubscription({ subscriptionId }));
    if (options.json) context.print("{}");
  },
  async test(context, subscriptionId, options) {
    const result = await call(context, options, (api) => api.testSubscription({ subscriptionId }));
    if (options.json) context.print(JSON.stringify(toJson(TestSubscriptionResponseSchema, result)));
    if (!result.accepted) throw new CommandError(`the receiver has not accepted the signal: ${result.error}`);
    if (!options.json) context.print("the receiver has accepted the signal");
  },
} as const satisfies Record<string, CommandOfOne>;

/** Calls the admin API. @throws CommandError */
function call<T>(context: Context, options: CallOptions, method: (api: AdminApi["signals"]) => Promise<T>): Promise<T> {
  const { url, signals } = openAdminApi(context.env, options);
  return method(signals).catch((failure: CallFailure) => {
    if (failure.code === Code.NotFound) throw new CommandError("there is no such subscription");
    if (failure.code !== Code.Unimplemented) throw failure;
    throw new CommandError(`${url} has no subscriptions: SIGNALS is off, or it is not the admin API`);
  });
}

/** The kinds of subscriptions, by their names on the command line. */
export const SUBSCRIPTION_KINDS = {
  webhook: SubscriptionKind.WEBHOOK,
  backchannel: SubscriptionKind.BACKCHANNEL,
  ssf_push: SubscriptionKind.SSF_PUSH,
} as const;

const subscriptionAsJson = (subscription: Subscription) => toJson(SubscriptionSchema, subscription);

/** The names of all kinds. Only a receiver can create a stream that it polls, so the command line does not offer that. */
const ALL_KINDS = Object.entries({ ...SUBSCRIPTION_KINDS, ssf_poll: SubscriptionKind.SSF_POLL });

/** Returns the name of a kind; for a kind that this version does not know, its number. */
const nameOfKind = (kind: SubscriptionKind) => ALL_KINDS.find(([, known]) => known === kind)?.[0] ?? String(kind);

/** A single failure is retried within a second, and is not yet a failing receiver. */
function stateOf({ pausedBecause, failures }: Subscription): string {
  if (pausedBecause !== "") return `paused: ${pausedBecause}`;
  return failures > 1 ? "failing" : "active";
}

function subscriptionTable(subscriptions: readonly Subscription[], nowMs: number): string {
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
  const counts = ["delivered", "given up", "waiting since", "failures", "last error"];
  return table([["subscription", "kind", "state", ...counts, "endpoint"], ...rows]);
}

/** Returns the fields of a subscription for people. @param secret the secret of a new webhook; empty otherwise */
function subscriptionFields(subscription: Subscription, nowMs: number, secret = ""): string {
  const { filter, lastError, lastErrorTime } = subscription;
  const when = (time: Timestamp | undefined) => shownAt(time, (ms) => moment(ms, nowMs));
  return fields([
    ["subscription", subscription.subscriptionId],
    ["kind", nameOfKind(subscription.kind)],
    ["endpoint", subscription.endpoint],
    ["audience", subscription.audience.join(", ")],
    ["signed by", subscription.signingAlg],
    ["subject", filter?.subject ?? ""],
    ["client", filter?.clientId ?? ""],
    ["events", filter?.events.join(", ") ?? ""],
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
