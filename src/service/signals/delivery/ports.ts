/** What the delivery of signals needs from outside. */
import type { Clock, SessionStore } from "../../session/ports.ts";
import type { WallClock } from "../../session/time.ts";
import type { SignClaims } from "../kinds/context.ts";
import type { PushKind } from "../kinds/request.ts";
import type { DeliveryError, PauseReason } from "../model.ts";
import type { SignalStore } from "../ports.ts";
import type { Sender } from "../send/sender.ts";

interface DeliveryEvents {
  /** Called after each attempt. @param lagMs the time since the end of the session */
  onAttempt(kind: PushKind, error: DeliveryError | undefined, lagMs: number): void;
  onPause(subscription: string, because: PauseReason): void;
  /** Called when the log began after the position of a subscription, so that signals were lost. */
  onLoss(subscription: string, signals: number): void;
  /** Called when signals are not sent again, because the receiver has not accepted them. */
  onGivenUp(subscription: string, signals: number): void;
  /** Called when the store is not available, so that signals could not be read or cursors not be stored. This is tried again soon. */
  onFailure(error: unknown): void;
}

export type DeliveryDeps = SignalStore & {
  /** The name of this instance: letters and digits. */
  readonly holder: string;
  readonly sender: Sender;
  readonly issuer: string;
  readonly signClaims: SignClaims;
  /** Decrypts the sealed secret of a subscription. @throws if it was encrypted with another key ring */
  readonly openSecret: (sealed: string) => string;
  readonly store: Pick<SessionStore, "onRevocation" | "shiftMs">;
  readonly clock: Clock;
  readonly wallClock: WallClock;
  /** Returns a random number from 0 to 1. */
  readonly fraction: () => number;
  readonly events: DeliveryEvents;
};
