import { toJson } from "@bufbuild/protobuf";
import { CreateSubscriptionResponseSchema } from "../../../gen/auth/admin/v1/signals_admin_pb.ts";
import { callOptions } from "../admin-api/client.ts";
import type { Context } from "../context.ts";
import { usageError } from "../exit.ts";
import { readText } from "../input.ts";
import { call, type Options } from "./call.ts";
import type { KindName } from "./kinds.ts";
import { KINDS, subscriptionFields } from "./view.ts";

type CreateOptions = Options & {
  readonly kind: KindName;
  readonly audience?: readonly string[];
  readonly subject?: string;
  readonly clientId?: string;
  readonly reason?: readonly string[];
  readonly secretFile?: string;
};

export async function createSubscription(context: Context, endpoint: string, options: CreateOptions): Promise<void> {
  const { kind, audience = [], subject = "", clientId = "", reason = [], secretFile, tokenFile } = options;
  if (secretFile === "-" && tokenFile === "-") {
    throw usageError("standard input has the secret: give the token by another way");
  }
  const secret = secretFile === undefined ? "" : readText(secretFile).trim();
  const filter = { subject, clientId, reasons: [...reason] };
  const request = { kind: KINDS[kind], endpoint, audience: [...audience], filter, secret };
  const created = await call(context, options, (signals) => signals.createSubscription(request, callOptions()));
  if (options.json) return context.print(JSON.stringify(toJson(CreateSubscriptionResponseSchema, created)));
  const { subscription, generatedSecret } = created;
  if (subscription === undefined) return;
  context.print(subscriptionFields(subscription, Date.now(), generatedSecret));
  if (generatedSecret !== "") context.note("the secret is not shown again: give it to the receiver now");
}
