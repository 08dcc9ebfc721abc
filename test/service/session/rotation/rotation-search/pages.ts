/**
 * A model of one browser whose cookie jar is used by the browser kit in its pages and by servers that render them. Searches look for a
 * wrong logout.
 *
 * Any tab may send a request at any time, with the token that the jar has at that moment. A request of the kit goes to the service. A
 * navigation goes to a process of the application, which calls the service once for all navigations with the same token, and reuses the
 * result for the time `share`. By `cookiesFor`, only the navigation that caused the call gets the new cookies, or all do. Responses
 * arrive in any order, late or never, and overwrite the jar. Neither a request nor a navigation is in flight for longer than `flight`.
 * The user may sign out at any time. The property: no request ends as `reuse`, and after the logout no request is served, whatever is in
 * the jar.
 *
 * Time passes in ticks (time.ts). The store's script runs once for each request, because browser.ts covers commands that are sent again.
 */
import {
  type decide,
  firstState,
  type RotationState,
  type TokenFields as Token,
} from "../../../../../src/service/session/rotation/rotation.ts";
import { later } from "../../../../../src/service/session/time.ts";
import type { Model, Step } from "./explore.ts";
import { childOf } from "./holders.ts";
import { canonical, isSame, mapped, tokensOf } from "./pages-canonical.ts";
import { longAgo, NOW, type Time } from "./time.ts";

/** The number of a process of the application; undefined for the browser kit, which calls the service itself. */
type Process = number | undefined;
type Request = {
  readonly process: Process;
  readonly token: Token;
  readonly sentAt: number;
  /** The token in the service's response; undefined until the service responds. */
  readonly response: Token | undefined;
};
type Shared = { readonly process: number; readonly token: Token; readonly response: Token; readonly sinceMs: number };

export type Pages = {
  /** The stored state of the session; undefined after the logout. */
  readonly state: RotationState | undefined;
  readonly jar: Token;
  readonly requests: readonly Request[];
  readonly shared: readonly Shared[];
};

export type PagesAssumptions = {
  readonly decide: typeof decide;
  readonly time: Time;
  readonly inFlight: number;
  readonly processes: number;
  /** For how long after a call of the service a process reuses its result, in ticks. */
  readonly share: number;
  /** Which of the navigations that share a response get its cookies. A navigation without these cookies does not change the jar. */
  readonly cookiesFor: "the first" | "all";
  /** The longest time in flight of a navigation and of a request of the kit, in ticks. The default is half of the reuse interval (R/2). */
  readonly flight?: number;
};

export function pages(assumptions: PagesAssumptions): Model<Pages> {
  const far = longAgo(assumptions.time);
  const state = { ...firstState("a"), siblingsSince: far, childMintedAt: far, childServedAt: far };
  return {
    start: { state, jar: childOf(state), requests: [], shared: [] },
    canonical: (world) => canonical(world, assumptions.time),
    *steps(world) {
      yield timePasses(world, assumptions);
      yield* requestsLeave(world, assumptions);
      for (const [at, request] of world.requests.entries()) {
        if (request.response === undefined) yield* serviceResponds(world, at, request, assumptions);
        else
          yield {
            label: () => "a response arrives",
            world: { ...world, jar: request.response, requests: world.requests.toSpliced(at, 1) },
          };
      }
      if (world.state) yield { label: () => "the user signs out", world: { ...world, state: undefined } };
    },
  };
}

function timePasses(world: Pages, { time, flight = time.half, share }: PagesAssumptions): Step<Pages> {
  const requests = world.requests.filter(({ sentAt }) => sentAt > -flight);
  const shared = world.shared.filter(({ sinceMs }) => sinceMs > -share);
  return { label: () => `${1 / (2 * time.half)} R`, world: shifted({ ...world, requests, shared }, 1) };
}

const nameOf = (process: Process) => (process === undefined ? "the kit" : `process ${process}`);

function* requestsLeave(world: Pages, { inFlight, processes }: PagesAssumptions): Iterable<Step<Pages>> {
  if (world.requests.length === inFlight) return;
  for (const process of [undefined, ...Array(processes).keys()]) {
    const request = { process, token: world.jar, sentAt: 0, response: undefined };
    yield {
      label: () => `a request leaves for ${nameOf(process)}`,
      world: { ...world, requests: [...world.requests, request] },
    };
  }
}

/** Yields the worlds after the service's response. Unless the process already has a result for this token, the store's script runs. */
function* serviceResponds(
  world: Pages,
  at: number,
  request: Request,
  { decide, time, cookiesFor }: PagesAssumptions,
): Iterable<Step<Pages>> {
  const { process, token } = request;
  const others = world.requests.toSpliced(at, 1);
  const shared = world.shared.find((one) => one.process === process && isSame(one.token, token));
  if (shared) {
    const joined = cookiesFor === "all" ? [{ ...request, response: shared.response }] : [];
    yield { label: () => `${nameOf(process)} has the result`, world: { ...world, requests: [...others, ...joined] } };
    return;
  }
  if (world.state === undefined) {
    yield { label: () => "a request is refused", world: { ...world, requests: others } };
    return;
  }
  const decision = decide(world.state, token, freeNonce(world), NOW, 2 * time.half);
  const label = () => `a request through ${nameOf(process)} runs: ${decision.outcome}`;
  if (decision.outcome === "reuse") {
    yield { label, world: undefined };
    return;
  }
  const response = childOf(decision.next);
  const requests = [...others, { ...request, response }];
  const results = process === undefined ? world.shared : [...world.shared, { process, token, response, sinceMs: 0 }];
  yield { label, world: { ...world, state: decision.next, requests, shared: results } };
}

function freeNonce(world: Pages): string {
  const { nonce, childNonce } = world.state ?? { nonce: "", childNonce: "" };
  const taken = new Set([nonce, childNonce, ...tokensOf(world).map((token) => token.nonce)]);
  const free = Array.from("abcdefghijklmnopqrstuvwxyz").find((letter) => !taken.has(letter));
  if (free === undefined) throw new Error("too few nonces");
  return free;
}

function shifted(world: Pages, by: number): Pages {
  const older = mapped(
    world,
    (s) => ({
      ...s,
      // NEVER, the only value above 0, means that there is no time. It is not shifted.
      siblingsSince: s.siblingsSince > 0 ? s.siblingsSince : later(s.siblingsSince, -by),
      childMintedAt: later(s.childMintedAt, -by),
      childServedAt: later(s.childServedAt, -by),
    }),
    (t) => ({ ...t, issuedAt: later(t.issuedAt, -by) }),
  );
  return {
    ...older,
    requests: older.requests.map((r) => ({ ...r, sentAt: r.sentAt - by })),
    shared: older.shared.map((s) => ({ ...s, sinceMs: s.sinceMs - by })),
  };
}
