/** The inputs from which each kind of subscription makes a request for a signal. */
import type { SessionStore } from "../../session/ports.ts";
import { toWallClock, type WallMs } from "../../session/time.ts";
import type { Signal } from "../model.ts";

/** A signal whose time is the wall clock's. */
export type SentSignal = Omit<Signal, "happenedAt"> & { readonly happenedAt: WallMs };

export function toSentSignal(signal: Signal, store: Pick<SessionStore, "shiftMs">): SentSignal {
  return { ...signal, happenedAt: toWallClock(signal.happenedAt, store.shiftMs({ sid: signal.sessionId })) };
}

/**
 * Signs claims with a key of the service.
 * @param typ the type of the token (RFC 8725 section 3.11)
 * @param alg the algorithm; undefined for the one that tokens of this type have by default. @throws Error if no key signs by it
 */
export type SignClaims = (
  typ: string,
  claims: Readonly<Record<string, unknown>>,
  alg?: string,
) => string | Promise<string>;

export type SendContext = {
  readonly issuer: string;
  readonly now: WallMs;
  readonly signClaims: SignClaims;
  /** The decrypted secret of the subscription; empty if it has none. */
  readonly secret: string;
};
