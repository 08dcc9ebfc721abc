import type { SendContext, SentSignal } from "../kinds/context.ts";
import { errorOfStatus, PUSH_KINDS, type PushKind } from "../kinds/request.ts";
import type { DeliveryError, KnownSubscription, PauseReason } from "../model.ts";
import type { DeliveryDeps } from "./ports.ts";

/** A receiver of webhooks responds with this status to ask for no further signals (Standard Webhooks). */
const GONE = 410;

type Pushed = { readonly kind: PushKind; readonly endpoint: string };
export type PushSubscription = KnownSubscription & Pushed;

/** Returns whether signals are sent to the receiver. Only those that poll have no endpoint. */
export function isPushed<One extends KnownSubscription>(one: One): one is One & Pushed {
  return one.endpoint !== undefined;
}

export type AttemptDeps = Pick<DeliveryDeps, "issuer" | "signClaims" | "openSecret" | "sender" | "wallClock"> & {
  readonly events: Pick<DeliveryDeps["events"], "onFailure">;
};

/**
 * Sends a signal once, and never rejects. Returns in `error` why the receiver did not accept the signal (undefined if it did), and in
 * `because` why the subscription must be paused, if the receiver asks for no further signals.
 */
export async function attempt(
  { issuer, signClaims, openSecret, sender, wallClock, events }: AttemptDeps,
  subscription: PushSubscription,
  signal: SentSignal,
): Promise<{ readonly error: DeliveryError | undefined; readonly because?: PauseReason | undefined }> {
  const { kind, sealedSecret, signingAlg } = subscription;
  try {
    const secret = sealedSecret === undefined ? "" : openSecret(sealedSecret);
    const context: SendContext = {
      issuer,
      secret,
      now: wallClock(),
      signClaims: (typ, claims) => signClaims(typ, claims, signingAlg),
    };
    const request = await PUSH_KINDS[kind].request(signal, subscription, context);
    const result = await sender.send(request);
    if (!result.ok) return { error: result.error };
    const because: PauseReason | undefined = kind === "webhook" && result.status === GONE ? "receiver" : undefined;
    return { error: errorOfStatus(kind, result.status), because };
  } catch (error) {
    // The secret cannot be decrypted, or no key signs by the subscription's algorithm. The signal is tried again, because an operator may
    // restore the keys.
    events.onFailure(error);
    return { error: "refused" };
  }
}
