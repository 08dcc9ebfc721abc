/** What the delivery of signals needs. */
import type { Clock, SessionStore } from "../../session/ports.ts";
import type { WallClock } from "../../session/time.ts";
import type { SignClaims } from "../kinds/context.ts";
import type { PushKind } from "../kinds/request.ts";
import type { DeliveryError, PauseReason } from "../model.ts";
import type { SignalStore } from "../ports.ts";
import type { Sender } from "../send/sender.ts";

/** What operators see of deliveries. */
interface DeliveryEvents {
  /** @param lagMs from the end of the session to now */
  onAttempt(kind: PushKind, error: DeliveryError | undefined, lagMs: number): void;
  onPause(subscription: string, because: PauseReason): void;
  /** The log was shorter than the subscription needed. */
  onLoss(subscription: string, signals: number): void;
  /** A round could not be finished: the store is not available. The next one repeats it. */
  onFailure(error: unknown): void;
}

export type DeliveryDeps = SignalStore & {
  /** Names this instance: letters and digits. */
  readonly holder: string;
  readonly sender: Sender;
  readonly issuer: string;
  readonly signClaims: SignClaims;
  /** Opens the sealed secret of a subscription. @throws if it is of another key ring */
  readonly openSecret: (sealed: string) => string;
  readonly store: Pick<SessionStore, "onRevocation" | "shiftMs">;
  readonly clock: Clock;
  readonly wallClock: WallClock;
  /** Random, from 0 to 1. */
  readonly fraction: () => number;
  readonly events: DeliveryEvents;
};
