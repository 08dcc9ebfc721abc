/**
 * A model of a theft: a victim and a thief hold the same token, and each knows only the responses to its own requests.
 *
 * They present tokens one after the other in any order. Any two requests are more than the reuse interval (R) apart, and every response
 * arrives. (If the victim loses a response, it has its previous token again, and both may be served once more.) The victim presents the
 * newest token that it received. The thief does so as well, or with `hoards` presents any token that it ever had. The searches limit how
 * often the served holder changes: a change is a request of one holder that is served after a request of the other holder was served. A
 * second property holds for requests at any times: no token two generations behind the confirmed one is served.
 *
 * The search visits every state. Only the last generations and a few siblings can matter, so the thief forgets tokens that are more than
 * two generations behind, and keeps at most three.
 */
import {
  type decide,
  firstState,
  type RotationState,
  type TokenFields as Token,
} from "../../../../../src/service/session/rotation/rotation.ts";
import { later, latest, storeMs } from "../../../../../src/service/session/time.ts";
import type { Model, Step } from "./explore.ts";
import { drawnTogether, NOW } from "./time.ts";

const HOLDERS = ["victim", "thief"] as const;
type Holder = (typeof HOLDERS)[number];

const LONG_AGO = storeMs(-1e9);

export type Theft = {
  readonly state: RotationState;
  readonly victim: readonly Token[];
  readonly thief: readonly Token[];
  readonly last: Holder | undefined;
  readonly changes: number;
};

type TheftAssumptions = {
  readonly decide: typeof decide;
  /** The reuse interval R, in ms. It may be any number, including 0. */
  readonly reuseIntervalMs: number;
  readonly hoards: boolean;
  /**
   * The greatest number of times that success may pass from one holder of the token to the other: from the victim to the thief, or back.
   * With "any" there is no limit, and two requests may follow each other within one reuse interval.
   */
  readonly allowed: number | "any";
};

export function holders({ decide, reuseIntervalMs: R, hoards, allowed }: TheftAssumptions): Model<Theft> {
  const first = firstState("first");
  const token = childOf(first);
  // Waits a little longer than one, two and three reuse intervals (R), and a very long one. The rules do not distinguish any others.
  const waits = [R + 1, 2 * R + 1, 3 * R + 1, 100 * (R + 1), ...(allowed === "any" ? [0, R / 2, R] : [])];

  function* presents(world: Theft, holder: Holder, held: Token, wait: number): Iterable<Step<Theft>> {
    const decision = decide(aged(world.state, wait), { ...held, issuedAt: later(held.issuedAt, -wait) }, "new", NOW, R);
    const changes = allowed === "any" ? 0 : world.changes + Number(world.last !== undefined && world.last !== holder);
    const label = () => `${wait} ms later the ${holder} presents ${held.generation}${held.nonce}: ${decision.outcome}`;
    if (decision.outcome === "reuse") return; // The session has ended, so no later request is served.
    if ((allowed !== "any" && changes > allowed) || held.generation < world.state.generation - 1) {
      yield { label, world: undefined };
      return;
    }
    const state = decision.next;
    const kept = (tokens: readonly Token[]) => tokens.map((t) => ({ ...t, issuedAt: later(t.issuedAt, -wait) }));
    const world2 = { ...world, state, victim: kept(world.victim), thief: kept(world.thief), last: holder, changes };
    if (holder === "victim" || !hoards) {
      yield { label, world: { ...world2, [holder]: [childOf(state)] } };
      return;
    }
    const hoard = [...world2.thief, childOf(state)].filter((t) => t.generation >= state.generation - 2);
    if (hoard.length <= 3) yield { label, world: { ...world2, thief: hoard } };
    else for (const at of hoard.keys()) yield { label, world: { ...world2, thief: hoard.toSpliced(at, 1) } };
  }

  return {
    start: { state: first, victim: [token], thief: [token], last: undefined, changes: 0 },
    *steps(world) {
      for (const holder of HOLDERS) {
        for (const held of world[holder]) for (const wait of waits) yield* presents(world, holder, held, wait);
      }
    },
    canonical: (world) => canonical(world, R),
  };
}

export function childOf({ generation, childNonce, childMintedAt }: RotationState): Token {
  return { generation: generation + 1, nonce: childNonce, issuedAt: childMintedAt };
}

export function aged(state: RotationState, wait: number): RotationState {
  const { siblingsSince, childMintedAt, childServedAt } = state;
  return {
    ...state,
    // NEVER, the only value above 0, means that there is no time. It is not shifted.
    siblingsSince: siblingsSince > 0 ? siblingsSince : later(siblingsSince, -wait),
    childMintedAt: later(childMintedAt, -wait),
    childServedAt: later(childServedAt, -wait),
  };
}

type Held = Pick<Theft, "state" | "victim" | "thief">;

/**
 * Reduces a state of the model to the facts on which later decisions may depend, so that equivalent states get the same key. All periods
 * of more than two reuse intervals (2 R) become equal.
 */
export function canonical<W extends Held>(world: W, R: number): { readonly key: string; readonly world: W } {
  const { state } = world;
  const names = new Map<string, string>();
  const name = (nonce: string) => {
    const known = names.get(nonce) ?? String.fromCharCode(97 + names.size);
    names.set(nonce, known);
    return known;
  };
  const children = [...world.victim, ...world.thief].filter(({ generation }) => generation > state.generation);
  const issued = [state.childMintedAt, ...children.map(({ issuedAt }) => issuedAt)];
  const drawn = drawnTogether([...issued, state.siblingsSince], 2 * R);
  const since = state.siblingsSince;
  const stored: RotationState = {
    generation: 2,
    nonce: name(state.nonce),
    siblingsSince: drawn(since),
    childNonce: name(state.childNonce),
    childMintedAt: drawn(state.childMintedAt),
    childServedAt: latest(state.childServedAt, storeMs(-R - 1)),
  };
  const token = ({ generation, nonce, issuedAt }: Token): Token => {
    const ahead = generation - state.generation;
    if (ahead > 0) return { generation: 2 + ahead, nonce: name(nonce), issuedAt: drawn(issuedAt) };
    if (ahead < 0) return { generation: Math.max(0, 2 + ahead), nonce: "", issuedAt: LONG_AGO };
    if (nonce === state.nonce) return { generation: 2, nonce: name(nonce), issuedAt: LONG_AGO };
    return { generation: 2, nonce: "", issuedAt: issuedAt >= since ? stored.siblingsSince : LONG_AGO };
  };
  const reduced = { ...world, state: stored, victim: world.victim.map(token), thief: world.thief.map(token) };
  return { key: JSON.stringify(reduced), world: reduced };
}
