/**
 * A model of one browser and one session. Searches look for a wrong logout.
 *
 * The browser has one cookie jar. Any tab may send a request at any time, with the token that the jar has at that moment. While a request
 * is in flight, the store may run its script at any moment and any number of times with the same arguments, as when a command is sent
 * again. Any of the responses may arrive, in any order with those of other requests, or none. A response that arrives overwrites the jar,
 * even if it is older than the jar's token. After `flight` the caller gives up. With `late`, its command may still wait in a socket or a
 * stalled store, and run at any later time: either it takes effect or, as in the service's scripts, the store's clock shows that the
 * command is too late. Any time may pass between two events (time.ts). The property: no request ever ends as `reuse`.
 *
 * With `scopes`, `COOKIE_DOMAIN` or `COOKIE_PATH` was changed, or differs between instances. Each response sets its cookie in either of
 * two scopes, and may remove the other one. The jar then has up to two cookies and sends both, of which the service uses the newest
 * (presented-cookie.ts).
 *
 * Two simplifications leave out only histories that others cover:
 * - A request is sent at the last moment at which it can have its token: just before it first runs, or just before the jar is
 * overwritten. If it were sent earlier, it could do nothing more, and would have less time left.
 * - A response is lost only when its time is over, or to make room for another request.
 */
import {
  type decide,
  firstState,
  type RotationState,
  type TokenFields as Token,
} from "../../../../../src/service/session/rotation/rotation.ts";
import { later } from "../../../../../src/service/session/time.ts";
import { canonical, clocks, freeNonce } from "./browser-canonical.ts";
import type { Model, Step } from "./explore.ts";
import { longAgo, NOW, type Time, untilNextMoment } from "./time.ts";

export type Request = {
  readonly token: Token;
  readonly sentAt: number;
  /**
   * The nonce that the store's script gives to a new token. All runs of the script for one request use the same nonce. It is empty before
   * the script first runs.
   */
  readonly nonce: string;
  /** The token in the response, if it arrives; undefined before the first run. */
  readonly response: Token | undefined;
};

export type World = {
  readonly state: RotationState;
  readonly jar: Token;
  /**
   * The token in a second cookie of the same name, which was set in another scope (`COOKIE_DOMAIN` or `COOKIE_PATH`). There is none if all
   * cookies have one scope.
   */
  readonly spare: Token | undefined;
  readonly requests: readonly Request[];
  /** The state of the replica, which is that of the master at the time when replication stopped. */
  readonly replica: RotationState | undefined;
  /** The token of a command whose caller has given up, and that has not run yet. */
  readonly stuck: Token | undefined;
};

export type Assumptions = {
  readonly decide: typeof decide;
  readonly time: Time;
  /** How many requests may be in flight at once. */
  readonly inFlight: number;
  /** The longest time that a request may be in flight, in ticks. The default is half of the reuse interval (R/2). */
  readonly flight?: number;
  /** What a failover does to requests in flight: they are lost, or they continue on the replica (`crossed`). With `none` there is no failover. */
  readonly failover?: "none" | "lost" | "crossed";
  /** The effect of a command that runs after its deadline; undefined if commands never run so late. */
  readonly late?: "acts" | "does nothing";
  /**
   * If set, the wall clock may be set forward by three reuse intervals (3 R) at any time. The value says whether the store's time then
   * changes as well.
   */
  readonly clockIsSet?: "time follows" | "time goes on as before";
  /** Compares two cookies, of which the service uses the newest; undefined if there is only one scope. */
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

/** Returns the world after the clock was set forward: stored and issued times are further in the past, but the times of sending are not. */
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
 * Returns the tokens that the service may use from a request with two cookies. It uses the newest one. The reduction in
 * browser-canonical.ts drops the order of tokens that no rule distinguishes, so either token may be the newest.
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

/** Returns the cookies that the jar may have after a response. They depend on the scope in which the response sets its cookie. */
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
    // NEVER, the only value above 0, means that there is no time. It is not shifted.
    siblingsSince: s.siblingsSince > 0 ? s.siblingsSince : later(s.siblingsSince, -by),
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
