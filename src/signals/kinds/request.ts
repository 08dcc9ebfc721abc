/** How each kind of subscription turns a signal into a request. Nothing here does I/O or keeps anything. */
import type { DeliveryError, Subscription, SubscriptionKind } from "../model.ts";
import type { OutgoingRequest } from "../send/sender.ts";
import { backchannelRequest } from "./backchannel.ts";
import type { RequestContext, SentSignal } from "./context.ts";
import { ssfPushRequest } from "./ssf.ts";
import { webhookRequest } from "./webhook.ts";

export type PushKind = Exclude<SubscriptionKind, "ssf_poll">;
type Target = Pick<Subscription, "audience"> & { readonly endpoint: string };

type Kind = {
  readonly request: (
    signal: SentSignal,
    target: Target,
    context: RequestContext,
  ) => OutgoingRequest | Promise<OutgoingRequest>;
  /** The status codes by which a receiver accepts. */
  readonly accepts: (status: number) => boolean;
};

export const KINDS: Readonly<Record<PushKind, Kind>> = {
  webhook: { request: webhookRequest, accepts: (status) => status >= 200 && status < 300 },
  // OpenID Connect Back-Channel Logout 1.0 section 2.8; some frameworks respond with 204.
  backchannel: { request: backchannelRequest, accepts: (status) => status === 200 || status === 204 },
  // RFC 8935 section 2.2.
  ssf_push: { request: ssfPushRequest, accepts: (status) => status === 202 },
};

/** Returns undefined if the receiver has accepted, or else what its status means. The text of a response is never looked at. */
export function errorOfStatus(kind: PushKind, status: number): DeliveryError | undefined {
  if (KINDS[kind].accepts(status)) return undefined;
  if (status >= 300 && status < 400) return "redirected";
  if (status >= 400 && status < 500) return OVERLOADED.has(status) ? "server_error" : "refused";
  return status >= 500 && status < 600 ? "server_error" : "invalid_response";
}

/** Request Timeout, Too Early, Too Many Requests: they say nothing about the signal. */
const OVERLOADED: ReadonlySet<number> = new Set([408, 425, 429]);
