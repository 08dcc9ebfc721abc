/**
 * A model of an attacker that presents any token that it has had, at any time and any number of times.
 *
 * At first the victim and the thief hold the same token. The victim's refreshes are more than `apart` from each other, and every response
 * arrives. The search tries all times of the thief's requests, although a real thief sees only the responses and would find some of these
 * times only by luck. The thief "meets" a refresh of the victim if it presents a token at most one reuse interval (R) before or after that
 * refresh; otherwise it misses the refresh. The property: a thief that has missed a refresh is served until the victim's next refresh at
 * the latest.
 */
import {
  type decide,
  firstState,
  type RotationState,
  type TokenFields as Token,
} from "../../../../../src/service/session/rotation/rotation.ts";
import { later, storeMs } from "../../../../../src/service/session/time.ts";
import type { Model, Step } from "./explore.ts";
import { aged, canonical, childOf } from "./holders.ts";
import { NOW } from "./time.ts";

type Polling = {
  readonly state: RotationState;
  readonly victim: readonly Token[];
  readonly thief: readonly Token[];
  readonly sinceVictim: number;
  readonly sinceThief: number;
  /**
   * Whether the thief may still present a token close enough to the victim's last refresh: it has not done so yet, and that refresh is at
   * most one reuse interval (R) ago.
   */
  readonly open: boolean;
  /** How many refreshes of the victim in a row the thief has missed: it presented no token within one reuse interval (R) of them. */
  readonly missed: number;
};

type PollingAssumptions = {
  readonly decide: typeof decide;
  /** The reuse interval R, in ticks. Every event happens at a tick. */
  readonly ticks: number;
  /** The victim's refreshes are more than this many ticks apart. */
  readonly apart: number;
  /** The greatest number of tokens that the thief keeps. */
  readonly hoard: number;
};

export function poller({ decide, ticks: R, apart, hoard: size }: PollingAssumptions): Model<Polling> {
  const first = firstState("first");
  const long = storeMs(-10 * R);
  const state = { ...first, siblingsSince: long, childMintedAt: long, childServedAt: long };
  const older = (tokens: readonly Token[]) => tokens.map((t) => ({ ...t, issuedAt: later(t.issuedAt, -1) }));

  function timePasses(world: Polling): Step<Polling> {
    const { state, victim, thief, sinceVictim, sinceThief, open, missed } = world;
    const closes = open && sinceVictim >= R;
    return {
      label: () => `${1 / R} R`,
      world: {
        ...world,
        state: aged(state, 1),
        victim: older(victim),
        thief: older(thief),
        sinceVictim: Math.min(sinceVictim + 1, apart + 1),
        sinceThief: Math.min(sinceThief + 1, R + 1),
        open: open && !closes,
        missed: Math.min(2, missed + Number(closes)),
      },
    };
  }

  function* victimComes(world: Polling): Iterable<Step<Polling>> {
    for (const token of world.victim) {
      const decision = decide(world.state, token, "new", NOW, R);
      if (decision.outcome === "reuse") continue; // The session has ended, so this history cannot break the property.
      const met = world.sinceThief <= R;
      yield {
        label: () => `the victim presents ${token.generation}${token.nonce}: ${decision.outcome}`,
        world: {
          ...world,
          state: decision.next,
          victim: [childOf(decision.next)],
          sinceVictim: 0,
          open: !met,
          missed: met ? 0 : world.missed,
        },
      };
    }
  }

  function* thiefComes(world: Polling): Iterable<Step<Polling>> {
    for (const token of world.thief) {
      const decision = decide(world.state, token, "new", NOW, R);
      if (decision.outcome === "reuse") continue;
      const label = () => `the thief presents ${token.generation}${token.nonce}: ${decision.outcome}`;
      if (world.missed > 1) {
        yield { label, world: undefined };
        return;
      }
      const meeting = world.open ? { open: false, missed: 0 } : {};
      const hoard = [...world.thief, childOf(decision.next)];
      const drops = hoard.length > size ? [...hoard.keys()] : [-1];
      for (const drop of drops) {
        const thief = drop < 0 ? hoard : hoard.toSpliced(drop, 1);
        yield { label, world: { ...world, state: decision.next, thief, sinceThief: 0, ...meeting } };
      }
    }
  }

  return {
    start: {
      state,
      victim: [childOf(state)],
      thief: [childOf(state)],
      sinceVictim: apart + 1,
      sinceThief: R + 1,
      open: false,
      missed: 0,
    },
    *steps(world) {
      yield timePasses(world);
      if (world.sinceVictim > apart) yield* victimComes(world);
      yield* thiefComes(world);
    },
    canonical(world) {
      const { state } = world;
      // Duplicates, and tokens that will never be served again, are dropped.
      const useful = world.thief.filter(
        (t, at) =>
          t.generation >= state.generation - 1 &&
          world.thief.findIndex((o) => o.nonce === t.nonce && o.generation === t.generation) === at,
      );
      const reduced = canonical(
        { ...world, thief: useful.sort((a, b) => a.generation - b.generation || b.issuedAt - a.issuedAt) },
        R,
      );
      return reduced;
    },
  };
}
