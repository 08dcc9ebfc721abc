/** Models in which time only tells whether the child of a session is young, that is, whether R has passed since it was minted. */
import type { RotationState } from "../../../../../src/service/session/rotation/rotation.ts";
import { storeMs } from "../../../../../src/service/session/time.ts";
import { NOW } from "./time.ts";

export const R = 1;
export const LONG_AGO = storeMs(-2 * R);

/**
 * Reduces a state to whether its child is young. What else it holds does not matter in these models: a refresh presents a token by its
 * distance from the confirmed one, not by its number.
 */
export function plain({ childMintedAt, childServedAt }: RotationState): RotationState {
  const time = (at: number) => (at < -R ? LONG_AGO : NOW);
  return {
    ...{ generation: 2, nonce: "confirmed", siblingsSince: LONG_AGO, childNonce: "child" },
    ...{ childMintedAt: time(childMintedAt), childServedAt: time(childServedAt) },
  };
}
