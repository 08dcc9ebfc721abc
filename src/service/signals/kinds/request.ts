/** Converts signals to requests, for each kind of subscription. This module does no I/O and has no state. */
import type { DeliveryError, Subscription, SubscriptionKind } from "../model.ts";
import type { OutgoingRequest } from "../send/sender.ts";
import { backchannelRequest } from "./backchannel.ts";
import type { SendContext, SentSignal } from "./context.ts";
import { ssfPushRequest } from "./ssf.ts";
import { webhookRequest } from "./webhook.ts";

export type PushKind = Exclude<SubscriptionKind, "ssf_poll">;
type Target = Pick<Subscription, "audience"> & { readonly endpoint: string };

type Kind = {
  readonly request: (
    signal: SentSignal,
    target: Target,
    context: SendContext,
  ) => OutgoingRequest | Promise<OutgoingRequest>;
  /** Returns whether a status code means that the receiver has accepted the signal. */
  readonly accepts: (status: number) => boolean;
};

export const PUSH_KINDS: Readonly<Record<PushKind, Kind>> = {
  webhook: { request: webhookRequest, accepts: (status) => status >= 200 && status < 300 },
  // Section 2.8 of OpenID Connect Back-Channel Logout 1.0 requires 200; some frameworks respond with 204.
  backchannel: { request: backchannelRequest, accepts: (status) => status === 200 || status === 204 },
  // Section 2.2 of RFC 8935 requires 202.
  ssf_push: { request: ssfPushRequest, accepts: (status) => status === 202 },
};

/** Returns undefined if the receiver has accepted the signal, otherwise the error that its status means. The body is never read. */
export function errorOfStatus(kind: PushKind, status: number): DeliveryError | undefined {
  if (PUSH_KINDS[kind].accepts(status)) return undefined;
  if (status >= 300 && status < 400) return "redirected";
  if (status >= 400 && status < 500) return OVERLOADED.has(status) ? "server_error" : "refused";
  return status >= 500 && status < 600 ? "server_error" : "invalid_response";
}

/** Statuses that say nothing about the signal: Request Timeout, Too Early, Too Many Requests. */
const OVERLOADED: ReadonlySet<number> = new Set([408, 425, 429]);
