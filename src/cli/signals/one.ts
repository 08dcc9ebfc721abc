/** The commands about one subscription. */
import { toJson } from "@bufbuild/protobuf";
import { type Subscription, TestSubscriptionResponseSchema } from "../../../gen/auth/admin/v1/signals_admin_pb.ts";
import { callOptions } from "../admin-api/client.ts";
import type { Context } from "../context.ts";
import { CommandError } from "../exit.ts";
import { call, type Options } from "./call.ts";
import { subscriptionAsJson, subscriptionFields } from "./view.ts";

export async function showSubscription(context: Context, subscriptionId: string, options: Options): Promise<void> {
  print(
    context,
    options,
    await call(context, options, (api) => api.getSubscription({ subscriptionId }, callOptions())),
  );
}

export async function pauseSubscription(context: Context, subscriptionId: string, options: Options): Promise<void> {
  const pause = call(context, options, (api) => api.pauseSubscription({ subscriptionId }, callOptions()));
  print(context, options, await pause);
}

export async function resumeSubscription(context: Context, subscriptionId: string, options: Options): Promise<void> {
  const resume = call(context, options, (api) => api.resumeSubscription({ subscriptionId }, callOptions()));
  print(context, options, await resume);
}

export async function deleteSubscription(context: Context, subscriptionId: string, options: Options): Promise<void> {
  await call(context, options, (api) => api.deleteSubscription({ subscriptionId }, callOptions()));
  if (options.json) context.print("{}");
}

export async function testSubscription(context: Context, subscriptionId: string, options: Options): Promise<void> {
  const result = await call(context, options, (api) => api.testSubscription({ subscriptionId }, callOptions()));
  if (options.json) context.print(JSON.stringify(toJson(TestSubscriptionResponseSchema, result)));
  if (!result.accepted) throw new CommandError(`the receiver has not accepted the signal: ${result.error}`);
  if (!options.json) context.print("the receiver has accepted the signal");
}

type Response = { readonly subscription?: Subscription | undefined };

function print(context: Context, { json }: Options, { subscription }: Response): void {
  if (subscription === undefined) return;
  context.print(json ? JSON.stringify(subscriptionAsJson(subscription)) : subscriptionFields(subscription, Date.now()));
}
