/** The commands about subscriptions. */
import { toJson } from "@bufbuild/protobuf";
import { type CallOptions, Code } from "@connectrpc/connect";
import {
  CreateSubscriptionResponseSchema,
  type Subscription,
  TestSubscriptionResponseSchema,
} from "../../../gen/auth/admin/v1/signals_admin_pb.ts";
import { type AdminApi, openAdminApi } from "../admin-api/client.ts";
import type { CallFailure } from "../admin-api/failure.ts";
import type { ConnectionOptions } from "../admin-api/options.ts";
import type { Context } from "../context.ts";
import { CommandError, usageError } from "../exit.ts";
import { readText } from "../input.ts";
import type { KindName } from "./kinds.ts";
import { KINDS, subscriptionAsJson, subscriptionFields, subscriptionTable } from "./view.ts";

type Options = ConnectionOptions & { readonly json?: boolean };

type CreateOptions = Options & {
  readonly kind: KindName;
  readonly audience?: readonly string[];
  readonly subject?: string;
  readonly clientId?: string;
  readonly reason?: readonly string[];
  readonly secretFile?: string;
};

export async function listSubscriptions(context: Context, options: Options): Promise<void> {
  const { subscriptions } = await call(context, options, (signals, how) => signals.listSubscriptions({}, how));
  if (options.json) context.print(JSON.stringify({ subscriptions: subscriptions.map(subscriptionAsJson) }));
  else if (subscriptions.length > 0) context.print(subscriptionTable(subscriptions, Date.now()));
  else context.note("no subscription");
}

export async function createSubscription(context: Context, endpoint: string, options: CreateOptions): Promise<void> {
  const { kind, audience = [], subject = "", clientId = "", reason = [], secretFile, tokenFile } = options;
  if (secretFile === "-" && tokenFile === "-") {
    throw usageError("standard input has the secret: give the token by another way");
  }
  const secret = secretFile === undefined ? "" : readText(secretFile).trim();
  const filter = { subject, clientId, reasons: [...reason] };
  const request = { kind: KINDS[kind], endpoint, audience: [...audience], filter, secret };
  const created = await call(context, options, (signals, how) => signals.createSubscription(request, how));
  if (options.json) return context.print(JSON.stringify(toJson(CreateSubscriptionResponseSchema, created)));
  const { subscription, generatedSecret } = created;
  if (subscription === undefined) return;
  context.print(subscriptionFields(subscription, Date.now(), generatedSecret));
  if (generatedSecret !== "") context.note("the secret is not shown again: give it to the receiver now");
}

type CommandOfOne = (context: Context, subscriptionId: string, options: Options) => Promise<void>;

/** The commands about one subscription, by their names. */
export const COMMANDS_OF_ONE = {
  async show(context, subscriptionId, options) {
    print(context, options, await call(context, options, (api, how) => api.getSubscription({ subscriptionId }, how)));
  },
  async pause(context, subscriptionId, options) {
    print(context, options, await call(context, options, (api, how) => api.pauseSubscription({ subscriptionId }, how)));
  },
  async resume(context, subscriptionId, options) {
    print(
      context,
      options,
      await call(context, options, (api, how) => api.resumeSubscription({ subscriptionId }, how)),
    );
  },
  async delete(context, subscriptionId, options) {
    await call(context, options, (api, how) => api.deleteSubscription({ subscriptionId }, how));
    if (options.json) context.print("{}");
  },
  async test(context, subscriptionId, options) {
    const result = await call(context, options, (api, how) => api.testSubscription({ subscriptionId }, how));
    if (options.json) context.print(JSON.stringify(toJson(TestSubscriptionResponseSchema, result)));
    if (!result.accepted) throw new CommandError(`the receiver has not accepted the signal: ${result.error}`);
    if (!options.json) context.print("the receiver has accepted the signal");
  },
} as const satisfies Record<string, CommandOfOne>;

type Response = { readonly subscription?: Subscription | undefined };

function print(context: Context, { json }: Options, { subscription }: Response): void {
  if (subscription === undefined) return;
  context.print(json ? JSON.stringify(subscriptionAsJson(subscription)) : subscriptionFields(subscription, Date.now()));
}

/** Calls the admin API. @throws CommandError */
function call<T>(
  context: Context,
  options: Options,
  method: (signals: AdminApi["signals"], options: CallOptions) => Promise<T>,
): Promise<T> {
  const api = openAdminApi(context.env, options);
  return api
    .call((how) => method(api.signals, how))
    .catch((failure: CallFailure) => {
      if (failure.code === Code.NotFound) throw new CommandError("there is no such subscription");
      if (failure.code !== Code.Unimplemented) throw failure;
      throw new CommandError(`${api.url} has no subscriptions: SIGNALS is off, or it is not the admin API`);
    });
}
