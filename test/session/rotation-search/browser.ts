/**
 * A model of one browser and one session, to be searched for a wrong logout.
 *
 * One cookie jar; any tab may send a request at any time, which carries the jar's token of that moment. While a
 * request is in flight, the store may run its script at any moment and any number of times with the same arguments
 * (a resent command; the page asks for two), the response of any run may be the one that arrives, in any order with
 * others, and an arriving response overwrites the jar, be it older than what is there. It may also never arrive.
 * No request is in flight longer than `flight`. Its caller gives up then, but with `late` the command of one may go on waiting
 * somewhere, in a socket or a stalled store, and run at any time after: it acts, or, as the scripts have it, the store's
 * clock shows that its time is over, and it does nothing. Time between any two events is arbitrary (time.ts).
 * The property: no request ever ends as `reuse`.
 *
 * With `scopes`, the deployment's `COOKIE_DOMAIN` or `COOKIE_PATH` was changed, or its instances differ in them: each response sets its
 * cookie in either of two scopes, and may expire the other one. The jar then holds up to two cookies and sends both. The service presents
 * the newest of them (presented-cookie.ts).
 *
 * Two shortcuts leave out only ways that another one covers:
 * - A request leaves at the last moment that it can carry its token: just before its first run, or just before the jar
 *   is overwritten. One that left earlier could do nothing more, and has less time left.
 * - A response is given up for lost when its time is over, or to make room for another request.
 */
import {
  type decide,
  firstState,
  type RotationState,
  type PresentedToken as Token,
} from "../../../src/session/rotation.ts";
import { later } from "../../../src/session/time.ts";
import { canonical, clocks, freeNonce } from "./browser-canonical.ts";
import type { Model, Step } from "./explore.ts";
import { longAgo, NOW, type Time, untilNextMoment } from "./time.ts";

export type Request = {
  readonly token: Token;
  readonly sentAt: number;
  /** The fresh nonce of its script, the same in every run; empty while no run has used it. */
  readonly nonce: string;
  /** The token in the response, if it arrives; undefined before the first run. */
  readonly response: Token | undefined;
};

export type World = {
  readonly state: RotationState;
  readonly jar: Token;
  /** The cookie of the same name in the other scope. */
  readonly spare: Token | undefined;
  readonly requests: readonly Request[];
  /** The state of the replica: an earlier one, from the time at which it stopped following. */
  readonly replica: RotationState | undefined;
  /** The token in a command whose caller has given up, and which has not run yet. */
  readonly stuck: Token | undefined;
};

export type Assumptions = {
  readonly decide: typeof decide;
  readonly time: Time;
  /** How many requests may be in flight at once. */
  readonly inFlight: number;
  /** The longest time that a request may be in flight, in ticks; R/2 by default. */
  readonly flight?: number;
  /** Whether the store may fall back to its replica. Requests that are in flight then are lost, or continue (`crossed`). */
  readonly failover?: "none" | "lost" | "crossed";
  /** What a command does that runs after its deadline; undefined if there are no such commands. */
  readonly late?: "acts" | "does nothing";
  /** Whether the wall clock is set forward (by 3 R, any number of times), and what the store's time does then. */
  readonly clockIsSet?: "time follows" | "time goes on as before";
  /** Which of two cookies the service presents; undefined: there is one scope. */
  readonly scopes?: (a: Token, b: Token) => number;
};

export function browser(assumptions: Assumptions): Model<World> {
  const { time, failover = "none" } = assumptions;
  const start = {
    ...firstState("first"),
    siblingsSince: longAgo(time),
    childMintedAt: longAgo(time),
    childServedAt: longAgo(time),
  };
  return {
    start: { state: start, jar: childOf(start), spare: undefined, requests: [], replica: undefined, stuck: undefined },
    canonical: (world) => canonical(world, time, assumptions.scopes !== undefined),
    *steps(world) {
      yield* timePasses(world, assumptions);
      yield* requestsRun(world, assumptions);
      yield* responsesArrive(world, assumptions);
      if (failover !== "none") yield* storeFails(world, failover);
      if (assumptions.clockIsSet !== undefined) yield clockIsSet(world, time, assumptions.clockIsSet);
      if (assumptions.late !== undefined) yield* lateRuns(world, assumptions, assumptions.late);
    },
  };
}

function* timePasses(world: World, { time, flight = time.half, late }: Assumptions): Iterable<Step<World>> {
  const requests = world.requests.filter(({ sentAt }) => sentAt > -flight);
  const moment = untilNextMoment(clocks({ ...world, requests }, time), time);
  const lost = world.requests.filter(({ sentAt }) => sentAt <= -flight);
  const label = `${time.dense ? "some time" : `${moment / (2 * time.half)} R`}${lost.length > 0 ? `; ${lost.length} lost` : ""}`;
  yield { label: () => label, world: shifted({ ...world, requests }, moment) };
  if (late === undefined || world.stuck !== undefined) return;
  for (const { token } of lost) {
    yield {
      label: () => `${label}, but ${named(token, world.state)} is still on its way`,
      world: shifted({ ...world, requests, stuck: token }, moment),
    };
  }
}

/** Returns the world after the clock was set: what is stored and issued looks older, but the times of sending stay. */
function clockIsSet(world: World, { half }: Time, then: "time follows" | "time goes on as before"): Step<World> {
  const label = () => "the clock is set forward by 3 R";
  if (then === "time goes on as before") return { label, world };
  const older = shifted(world, 6 * half);
  const requests = older.requests.map((r) => ({ ...r, sentAt: r.sentAt + 6 * half }));
  return { label, world: { ...older, requests } };
}

function* lateRuns(world: World, { decide, time }: Assumptions, late: "acts" | "does nothing"): Iterable<Step<World>> {
  const { stuck, state } = world;
  if (stuck === undefined) return;
  const label = (outcome: string) => () => `a late command with ${named(stuck, state)} runs: ${outcome}`;
  if (late === "does nothing") {
    yield { label: label(late), world: { ...world, stuck: undefined } };
    return;
  }
  const decision = decide(state, stuck, freeNonce(world), NOW, 2 * time.half);
  const next = decision.outcome === "reuse" ? undefined : { ...world, state: decision.next, stuck: undefined };
  yield { label: label(decision.outcome), world: next };
}

/**
 * Returns what a request presents now. Tokens that look alike to every rule have lost their order (browser-canonical.ts), so either may
 * be the newest.
 */
function presented({ jar, spare }: World, { scopes }: Assumptions): readonly Token[] {
  if (spare === undefined || scopes === undefined) return [jar];
  const order = scopes(jar, spare);
  return order === 0 ? [jar, spare] : [order > 0 ? jar : spare];
}

function* requestsRun(world: World, assumptions: Assumptions): Iterable<Step<World>> {
  const { decide, time, inFlight } = assumptions;
  const run = (token: Token, nonce: string) => {
    const decision = decide(world.state, token, nonce, NOW, 2 * time.half);
    return { outcome: decision.outcome, state: decision.outcome === "reuse" ? undefined : decision.next };
  };
  if (world.requests.length < inFlight) {
    const nonce = freeNonce(world);
    for (const token of presented(world, assumptions)) {
      const { outcome, state } = run(token, nonce);
      const label = () => `a tab sends ${named(token, world.state)}: ${outcome}`;
      const sent = (response: Token) => ({ token, sentAt: 0, nonce, response });
      yield { label, world: state && { ...world, state, requests: [...world.requests, sent(childOf(state))] } };
    }
  }
  for (const [at, request] of world.requests.entries()) {
    const others = world.requests.toSpliced(at, 1);
    const nonce = request.nonce || freeNonce(world);
    const { outcome, state } = run(request.token, nonce);
    const again = request.response === undefined ? "runs" : "runs again";
    const label = () => `a request with ${named(request.token, world.state)} ${again}: ${outcome}`;
    yield {
      label,
      world: state && { ...world, state, requests: [...others, { ...request, nonce, response: childOf(state) }] },
    };
    if (request.response === undefined || state === undefined) continue;
    const keeps = () => `${label()}, but the earlier response will arrive`;
    yield { label: keeps, world: { ...world, state, requests: [...others, { ...request, nonce }] } };
  }
}

function* responsesArrive(world: World, assumptions: Assumptions): Iterable<Step<World>> {
  const { inFlight } = assumptions;
  for (const [at, { response }] of world.requests.entries()) {
    const requests = world.requests.toSpliced(at, 1);
    if (world.requests.length === inFlight) yield { label: () => "a response is lost", world: { ...world, requests } };
    if (response === undefined) continue;
    const { jar } = world;
    const overwrites = assumptions.scopes || response.nonce !== jar.nonce || response.generation !== jar.generation;
    for (const token of presented(world, assumptions)) {
      for (let left = 0; left <= (overwrites ? inFlight - requests.length : 0); left++) {
        const leaving = Array.from({ length: left }, () => ({ token, sentAt: 0, nonce: "", response: undefined }));
        for (const [place, jars] of jarsAfter(world, response, assumptions)) {
          yield {
            label: () =>
              `${named(response, world.state)} arrives${place}${left > 0 ? `; just before, ${left} left with ${named(token, world.state)}` : ""}`,
            world: { ...world, ...jars, requests: [...requests, ...leaving] },
          };
        }
      }
    }
  }
}

/** Returns the cookies after a response, by where it sets its own. */
function jarsAfter({ jar, spare }: World, response: Token, { scopes }: Assumptions) {
  const alone = ["", { jar: response, spare: undefined }] as const;
  if (scopes === undefined) return [alone];
  return [
    alone,
    [" in the other scope", { jar, spare: response }],
    [" in its scope", { jar: response, spare }],
  ] as const;
}

function* storeFails(world: World, failover: "lost" | "crossed"): Iterable<Step<World>> {
  const { state, replica } = world;
  if (replica === undefined) {
    yield { label: () => "the replica stops following", world: { ...world, replica: state } };
    return;
  }
  const requests = failover === "lost" ? [] : world.requests;
  yield { label: () => "FAILOVER to the replica", world: { ...world, state: replica, replica: undefined, requests } };
}

function childOf({ generation, childNonce, childMintedAt }: RotationState): Token {
  return { generation: generation + 1, nonce: childNonce, issuedAt: childMintedAt };
}

function shifted({ state, jar, spare, requests, replica, stuck }: World, by: number): World {
  const token = (t: Token): Token => ({ ...t, issuedAt: later(t.issuedAt, -by) });
  const stored = (s: RotationState): RotationState => ({
    ...s,
    siblingsSince: s.siblingsSince > 0 ? s.siblingsSince : later(s.siblingsSince, -by), // The time NEVER is not shifted.
    childMintedAt: later(s.childMintedAt, -by),
    childServedAt: later(s.childServedAt, -by),
  });
  return {
    state: stored(state),
    jar: token(jar),
    spare: spare && token(spare),
    requests: requests.map((r) => ({
      ...r,
      token: token(r.token),
      sentAt: r.sentAt - by,
      response: r.response && token(r.response),
    })),
    replica: replica && stored(replica),
    stuck: stuck && token(stuck),
  };
}

function named({ generation, nonce }: Token, state: RotationState): string {
  const ahead = generation - state.generation;
  if (ahead === 1) return nonce === state.childNonce ? "the child" : "a sibling of the child";
  if (ahead === 0) return nonce === state.nonce ? "the confirmed token" : "a sibling of the confirmed token";
  return ahead > 1 ? `a token ${ahead - 1} ahead of the child` : `a token ${-ahead} behind the confirmed one`;
}
