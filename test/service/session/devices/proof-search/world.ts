/**
 * A model of one session whose client proves a key with each request. Searches look for a wrong logout, and for a thief that is served.
 *
 * Any number of processes share one file of tokens and the key. Each may present the token of the file, or one that was in the file at any
 * earlier time: the process read the file then, another was killed before it could write, or a backup was restored. A request may run at
 * any time and any number of times. Its response may be lost, or arrive at any later time and then overwrite the file, so the model has no
 * limit on the time in flight. With `failover` the store falls back to an earlier state, any number of times.
 *
 * A thief comes at any time, and from then on has every token: those of the file, of all processes, of responses on their way, and those
 * that the service returned to it. It has a key, but not that of the client. It presents any token with its own proof or with none, and
 * tries to end the session.
 *
 * The properties:
 * - Without a thief no request is refused, and the session does not end.
 * - A session that was created with its key has the same property even with a thief, which is never served and cannot end the session.
 * - Once the client has bound its session by the first proof, the thief is not served, and cannot end the session with a token that was
 * issued after the binding.
 * - A thief that has bound the session first is detected by the next request of the client, which ends the session.
 */
import {
  boundKey,
  type DevicePresentation,
  type judgeDevice,
  type judgeEnd,
  type provenBy,
} from "../../../../../src/service/session/devices/binding.ts";
import type { DeviceBinding, KeyProof } from "../../../../../src/service/session/devices/key.ts";
import {
  type Decision,
  type decide,
  firstState,
  type RotationState,
  type TokenFields as Token,
} from "../../../../../src/service/session/rotation/rotation.ts";
import { storeMs } from "../../../../../src/service/session/time.ts";
import type { Model, Step } from "../../rotation/rotation-search/explore.ts";
import { NOW } from "../../rotation/rotation-search/time.ts";
import {
  aged,
  CREATED,
  canonical,
  childOf,
  freeNonce,
  type Key,
  type Owner,
  R,
  type Request,
  type World,
} from "./state.ts";

export type Rules = {
  readonly judge: typeof judgeDevice;
  readonly judgeEnd: typeof judgeEnd;
  readonly provenBy: typeof provenBy;
  readonly decide: typeof decide;
};

export type Assumptions = Rules & {
  /** Whether the session is created with the key of its client, or bound by the first proof. */
  readonly bound: "at creation" | "by the first proof";
  /** Whether the client has a key. Even without one, it must be protected from a thief that binds the session. */
  readonly proves?: boolean;
  readonly thief: boolean;
  /**
   * How many requests may be under way at once. `stale` is how many earlier tokens of the client may exist besides the token in its file.
   */
  readonly inFlight: number;
  readonly stale: number;
  readonly failover?: boolean;
  /**
   * Whether states are reduced to the facts that the service's rules use. That would be wrong for mutants of the rules, which may use other
   * facts.
   */
  readonly forgets?: boolean;
};

/** The thumbprints of the keys, each a single byte. */
const BYTE = { client: 1, thief: 2 } as const;
const proofOf = (owner: Owner): KeyProof => ({ thumbprint: owner === "client" ? "AQ" : "Ag" });
const bindingOf = ({ owner, since }: Key): DeviceBinding => {
  return { key: { algorithm: "DPoP", thumbprint: Uint8Array.of(BYTE[owner]) }, state: "bound", since: storeMs(since) };
};
const subjectOf = ({ key }: World) => ({ createdAt: CREATED, ...(key && { device: bindingOf(key) }) });

export function session(assumptions: Assumptions): Model<World> {
  const { bound, thief, failover = false, forgets = false } = assumptions;
  const state: RotationState = {
    ...firstState("first"),
    siblingsSince: CREATED,
    childMintedAt: CREATED,
    childServedAt: CREATED,
  };
  const key: Key | undefined = bound === "at creation" ? { owner: "client", since: CREATED } : undefined;
  const start = { state, key, file: childOf(state), stale: [], requests: [], loot: [], hasThief: false };
  return {
    start: { ...start, replica: undefined },
    canonical: (world) => canonical(world, forgets),
    *steps(world) {
      yield { label: () => "0.5 R", world: aged(world) };
      yield* clientActs(world, assumptions);
      yield* responsesArrive(world, assumptions);
      if (failover) yield* storeFails(world);
      if (thief && !world.hasThief) yield { label: () => "a thief comes", world: { ...world, hasThief: true } };
      if (world.hasThief) yield* thiefActs(world, assumptions);
    },
  };
}

type Ran =
  | {
      readonly verdict: "served";
      readonly outcome: string;
      readonly state: RotationState;
      readonly key: Key | undefined;
    }
  | { readonly verdict: "refused" | "ended"; readonly outcome: string };

/** Decides about a request by the service's own rules, in the order in which the stores apply them: device binding, then rotation. */
function run(
  world: World,
  token: Token,
  nonce: string,
  prover: Owner | undefined,
  { judge, provenBy, decide }: Rules,
): Ran {
  const subject = subjectOf(world);
  const presented: DevicePresentation = {
    ...{ lifeMs: R, cookie: undefined, skipped: false, transport: "token" },
    ...(prover && { proof: proofOf(prover) }),
  };
  const verdict = judge(subject, token, presented, NOW, R);
  if (verdict === "two_holders") return { verdict: "ended", outcome: verdict };
  if (verdict !== "held" && verdict !== "first_proof" && verdict !== "unproven")
    return { verdict: "refused", outcome: verdict };
  const decision: Decision = decide(world.state, token, nonce, NOW, R, verdict === "held");
  if (decision.outcome === "reuse") return { verdict: "ended", outcome: "reuse" };
  const { outcome, next } = decision;
  const binds = prover !== undefined && provenBy(verdict, outcome) === "first_use";
  const key = binds ? { owner: prover, since: boundKey(subject, presented, NOW).since } : world.key;
  return { verdict: "served", outcome, state: next, key };
}

/**
 * Returns whether a refusal of the client, or the end of its session, is allowed. It is allowed if a thief has bound the session, because
 * the session must end when the client's next request reveals the theft.
 */
function isDetection(world: World, { bound }: Assumptions, verdict: "refused" | "ended"): boolean {
  if (!world.hasThief || bound === "at creation" || world.key?.owner === "client") return false;
  return verdict === "ended";
}

function* clientActs(world: World, assumptions: Assumptions): Iterable<Step<World>> {
  const { inFlight, proves = true } = assumptions;
  const prover = proves ? "client" : undefined;
  const after = (ran: Ran, requests: (response: Token) => readonly Request[]): Step<World>["world"] | "over" => {
    if (ran.verdict !== "served") return isDetection(world, assumptions, ran.verdict) ? "over" : undefined;
    return { ...world, state: ran.state, key: ran.key, requests: requests(childOf(ran.state)) };
  };
  if (world.requests.length < inFlight) {
    const nonce = freeNonce(world);
    for (const token of proves ? [world.file, ...world.stale] : [world.file]) {
      const ran = run(world, token, nonce, prover, assumptions);
      const reached = after(ran, (response) => [...world.requests, { token, nonce, response }]);
      if (reached !== "over")
        yield { label: () => `a process presents ${named(token, world)}: ${ran.outcome}`, world: reached };
    }
  }
  for (const [at, request] of world.requests.entries()) {
    if (!proves) continue; // rotation-search covers repeated requests of clients without a key.
    const ran = run(world, request.token, request.nonce, prover, assumptions);
    const label = () => `the request with ${named(request.token, world)} runs again: ${ran.outcome}`;
    const others = world.requests.toSpliced(at, 1);
    const reached = after(ran, (response) => [...others, { ...request, response }]);
    if (reached === "over") continue;
    yield { label, world: reached };
    // Alternatively, this run of the store's script has no response, and the response of an earlier run arrives.
    if (reached !== undefined) yield { label, world: { ...reached, requests: world.requests } };
  }
}

function* responsesArrive(world: World, { stale }: Assumptions): Iterable<Step<World>> {
  for (const [at, { response }] of world.requests.entries()) {
    const requests = world.requests.toSpliced(at, 1);
    yield { label: () => "a response is lost, or its process killed", world: { ...world, requests } };
    const label = () => `${named(response, world)} goes into the file`;
    yield { label, world: { ...world, requests, file: response } };
    // Alternatively, the response overwrites the file, and a process that read the file before keeps the previous token.
    if (world.stale.length < stale) {
      yield { label, world: { ...world, requests, file: response, stale: [...world.stale, world.file] } };
    }
  }
  for (const [at, token] of world.stale.entries()) {
    yield {
      label: () => "a process with an earlier token ends",
      world: { ...world, stale: world.stale.toSpliced(at, 1) },
    };
    yield { label: () => `a backup with ${named(token, world)} is restored`, world: { ...world, file: token } };
  }
}

function* storeFails(world: World): Iterable<Step<World>> {
  const { state, replica } = world;
  if (replica === undefined) {
    yield { label: () => "the replica stops following", world: { ...world, replica: state } };
    return;
  }
  yield { label: () => "FAILOVER to the replica", world: { ...world, state: replica, replica: undefined } };
}

/** The greatest number of tokens from the service that the thief keeps. */
const LOOT = 1;

function* thiefActs(world: World, assumptions: Assumptions): Iterable<Step<World>> {
  const under = world.requests.flatMap(({ token, response }) => [token, response]);
  for (const token of new Set([world.file, ...world.stale, ...under, ...world.loot])) {
    const isBefore = world.key !== undefined && world.key.since > CREATED && token.issuedAt < world.key.since;
    for (const prover of ["thief", undefined] as const) {
      const ran = run(world, token, freeNonce(world), prover, assumptions);
      const label = () =>
        `the thief presents ${named(token, world)} with ${prover ? "its proof" : "no proof"}: ${ran.outcome}`;
      const isOwn = world.key?.owner === "client";
      if (isOwn && (ran.verdict === "served" || (ran.verdict === "ended" && !isBefore)))
        yield { label, world: undefined };
      if (ran.verdict === "served") {
        const loot = [...world.loot, childOf(ran.state)].slice(-LOOT);
        yield { label, world: { ...world, state: ran.state, key: ran.key, loot } };
      }
      const mayEnd = assumptions.judgeEnd(subjectOf(world), token, prover && proofOf(prover)) === "allowed";
      if (mayEnd && isOwn && !isBefore) yield { label: () => "the thief ends the session", world: undefined };
    }
  }
}

function named({ generation, nonce }: Token, { state }: World): string {
  const ahead = generation - state.generation;
  if (ahead === 1) return nonce === state.childNonce ? "the child" : "a sibling of the child";
  return ahead > 1 ? "a token that the store has lost" : `a token of ${1 - ahead} generations ago`;
}
