/**
 * A model of a logout during refreshes. Searches look for a refresh that is served after the logout was acknowledged.
 *
 * Up to four refreshes are in flight, with any token that the session may still accept. The store's scripts for the refreshes and for the
 * logout may run at any time and repeatedly. The logout is acknowledged after its script has run. A store that is `atomic` decides and
 * writes in one step. A store that needs two steps has a race, which the search must find.
 */
import { type decide, firstState, type RotationState } from "../../../../../src/service/session/rotation/rotation.ts";
import type { Model, Step } from "./explore.ts";
import { NOW } from "./time.ts";
import { LONG_AGO, plain, R } from "./young.ts";

type Refresh = {
  readonly ahead: number;
  /**
   * The state that the refresh has read, in a store that reads in one step and writes in a second one. The second step decides by this
   * state.
   */
  readonly read: RotationState | undefined;
};

export type Logout = {
  readonly stored: RotationState | undefined;
  readonly ended: boolean;
  readonly acknowledged: boolean;
  readonly refreshes: readonly Refresh[];
};

export function logout(rule: typeof decide, store: "atomic" | "in two steps"): Model<Logout> {
  /**
   * Serves `refresh` from the state that was read earlier. The property is broken if the logout was acknowledged, or if the write creates
   * the session again.
   */
  function served(world: Logout, read: RotationState, refresh: Refresh, others: readonly Refresh[]): Step<Logout> {
    const { ahead } = refresh;
    const generation = read.generation + ahead;
    const nonce = ahead === 1 ? read.childNonce : read.nonce;
    const decision = rule(read, { generation, nonce, issuedAt: LONG_AGO }, "new", NOW, R);
    const label = () => `a refresh (${ahead} ahead of the confirmed token) runs: ${decision.outcome}`;
    if (decision.outcome === "reuse")
      return { label, world: { ...world, stored: undefined, ended: true, refreshes: others } };
    if (world.acknowledged) return { label, world: undefined };
    return { label, world: { ...world, stored: decision.next, refreshes: [...others, { ahead, read: undefined }] } };
  }

  function* runs(world: Logout, at: number, refresh: Refresh): Iterable<Step<Logout>> {
    const others = world.refreshes.toSpliced(at, 1);
    yield { label: () => "a refresh is lost", world: { ...world, refreshes: others } };
    if (refresh.read !== undefined) yield served(world, refresh.read, refresh, others);
    else if (world.stored === undefined)
      return; // The session has ended, so the refresh is refused without a write.
    else if (store === "atomic") yield served(world, world.stored, refresh, others);
    else
      yield {
        label: () => "a refresh reads",
        world: { ...world, refreshes: [...others, { ...refresh, read: world.stored }] },
      };
  }

  return {
    start: { stored: firstState("first"), ended: false, acknowledged: false, refreshes: [] },
    *steps(world) {
      const { stored, ended, refreshes } = world;
      if (stored !== undefined) yield { label: () => "more than R passes", world: { ...world, stored: aged(stored) } };
      if (refreshes.length < 4) {
        for (const ahead of [-1, 0, 1, 2]) {
          const sent = { ahead, read: undefined };
          yield { label: () => "a refresh is sent", world: { ...world, refreshes: [...refreshes, sent] } };
        }
      }
      for (const [at, refresh] of refreshes.entries()) yield* runs(world, at, refresh);
      yield { label: () => "the logout runs", world: { ...world, stored: undefined, ended: true } };
      if (ended) yield { label: () => "the logout is acknowledged", world: { ...world, acknowledged: true } };
    },
    canonical(world) {
      const reduced = {
        ...world,
        stored: world.stored && plain(world.stored),
        refreshes: world.refreshes
          .map(({ ahead, read }) => ({ ahead, read: read && plain(read) }))
          .sort((a, b) => a.ahead - b.ahead || Number(a.read !== undefined) - Number(b.read !== undefined)),
      };
      return { key: JSON.stringify(reduced), world: reduced };
    },
  };
}

function aged(state: RotationState): RotationState {
  return { ...state, childMintedAt: LONG_AGO, childServedAt: LONG_AGO };
}
