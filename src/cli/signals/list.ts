import { callOptions } from "../admin-api/client.ts";
import type { Context } from "../context.ts";
import { call, type Options } from "./call.ts";
import { subscriptionAsJson, subscriptionTable } from "./view.ts";

export async function listSubscriptions(context: Context, options: Options): Promise<void> {
  const { subscriptions } = await call(context, options, (signals) => signals.listSubscriptions({}, callOptions()));
  if (options.json) context.print(JSON.stringify({ subscriptions: subscriptions.map(subscriptionAsJson) }));
  else if (subscriptions.length > 0) context.print(subscriptionTable(subscriptions, Date.now()));
  else context.note("no subscription");
}
