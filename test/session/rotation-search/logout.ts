/**
 * A model of a logout among refreshes: whether anything of a session is served after its logout was acknowledged.
 *
 * Up to four refreshes are in flight, with any token that the session may still serve; the script of each may run at any
 * time and again; the logout may run at any time and again, and is acknowledged once it has run. The store decides and
 * writes in one step (`atomic`), or in two, which is the mistake that this search has to notice.
 */
import { type decide, firstState, type RotationState } from "../../../src/session/rotation.ts";
import { storeMs } from "../../../src/session/time.ts";
import type { Model, Step } from "./explore.ts";
import { NOW } from "./time.ts";

type Refresh = {
  readonly ahead: number;
  /** The state that a store which works in two steps has read, before it has responded. */
  readonly read: RotationState | undefined;
};

export type Logout = {
  readonly stored: RotationState | undefined;
  readonly ended: boolean;
  readonly acknowledged: boolean;
  readonly refreshes: readonly Refresh[];
};

const R = 1;
const LONG_AGO = storeMs(-2 * R);

export function logout(rule: typeof decide, store: "atomic" | "in two steps"): Model<Logout> {
  /** Serves `refresh` from the state that was read. This is a violation if the logout was acknowledged, or if the session exists again. */
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
      return; // The session has ended, so the refresh is refused, and nothing is written.
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

/** Returns the state without its generation and nonces, which do not matter here. Whether the child is young does matter. */
function plain({ childMintedAt, childServedAt }: RotationState): RotationState {
  const time = (at: number) => (at < -R ? LONG_AGO : NOW);
  return {
    generation: 2,
    nonce: "confirmed",
    siblingsSince: LONG_AGO,
    childNonce: "child",
    childMintedAt: time(childMintedAt),
    childServedAt: time(childServedAt),
  };
}
