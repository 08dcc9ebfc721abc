/** A state ("world") of the model in world.ts, and the reduction of states, by which states with the same future become equal. */
import type { RotationState, TokenFields as Token } from "../../../../../src/service/session/rotation/rotation.ts";
import { later, storeMs } from "../../../../../src/service/session/time.ts";
import { drawnTogether } from "../../rotation/rotation-search/time.ts";

/** Half of the reuse interval, in ticks. Every event happens at a tick. */
const HALF = 1;
export const R = 2 * HALF;
/** The time at which the session was created, before all other events. */
export const CREATED = storeMs(-40 * R);

export type Owner = "client" | "thief";
export type Key = { readonly owner: Owner; readonly since: number };

export type Request = {
  readonly token: Token;
  /** The nonce that the store's script gives to a new token. All runs of the script for one request use the same nonce. */
  readonly nonce: string;
  /** The token in the response, if the response arrives. */
  readonly response: Token;
};

export type World = {
  readonly state: RotationState;
  readonly key: Key | undefined;
  readonly file: Token;
  /** Tokens that were in the client's file earlier. A process that read the file at that time, or a backup of the file, still has them. */
  readonly stale: readonly Token[];
  readonly requests: readonly Request[];
  /** Tokens that the service has returned to the thief. The thief also has all tokens of the client. */
  readonly loot: readonly Token[];
  readonly hasThief: boolean;
  /** The state of the replica, which is that of the master at the time when replication stopped. */
  readonly replica: RotationState | undefined;
};

export const childOf = ({ generation, childNonce, childMintedAt }: RotationState): Token => {
  return { generation: generation + 1, nonce: childNonce, issuedAt: childMintedAt };
};

const tokensOf = ({ file, stale, requests, loot }: World): Token[] => [
  file,
  ...stale,
  ...requests.flatMap(({ token, response }) => [token, response]),
  ...loot,
];
const statesOf = ({ state, replica }: World): RotationState[] => (replica === undefined ? [state] : [state, replica]);

const NONCES = Array.from("abcdefghijklmnopqrstuvwxyz");
const noncesOf = (world: World) => [
  ...statesOf(world).flatMap(({ nonce, childNonce }) => [nonce, childNonce]),
  ...tokensOf(world).map(({ nonce }) => nonce),
];

export function freeNonce(world: World): string {
  const taken = new Set([...noncesOf(world), ...world.requests.map(({ nonce }) => nonce)]);
  const free = NONCES.find((nonce) => !taken.has(nonce));
  if (free === undefined) throw new Error("too few nonces");
  return free;
}

type Maps = {
  readonly time: (time: number) => number;
  readonly generation?: (generation: number) => number;
  readonly nonce?: (nonce: string) => string;
};

function mapped(world: World, { time, generation = (g) => g, nonce = (n) => n }: Maps): World {
  const token = (t: Token): Token => ({
    generation: generation(t.generation),
    nonce: nonce(t.nonce),
    issuedAt: storeMs(time(t.issuedAt)),
  });
  const stored = (s: RotationState): RotationState => ({
    generation: generation(s.generation),
    nonce: nonce(s.nonce),
    siblingsSince: storeMs(time(s.siblingsSince)),
    childNonce: nonce(s.childNonce),
    childMintedAt: storeMs(time(s.childMintedAt)),
    childServedAt: storeMs(time(s.childServedAt)),
  });
  const { state, key, file, stale, requests, loot, replica } = world;
  return {
    ...world,
    state: stored(state),
    key: key && { ...key, since: time(key.since) },
    file: token(file),
    stale: stale.map(token),
    requests: requests.map((r) => ({ token: token(r.token), nonce: nonce(r.nonce), response: token(r.response) })),
    loot: loot.map(token),
    replica: replica && stored(replica),
  };
}

/**
 * Returns the world after half of the reuse interval (R/2) has passed. The time of the session's creation does not change, and neither does
 * NEVER, which stands for the absence of a time.
 */
export function aged(world: World): World {
  return mapped(world, { time: (time) => (time > 0 || time <= CREATED ? time : later(storeMs(time), -HALF)) });
}

/**
 * Reduces a state ("world") to one that represents all states with the same future. No rule distinguishes distances of more than four
 * generations, or of more than two reuse intervals (2 R). Longer distances are shortened to these, and nonces are renamed. With `forgets`,
 * facts about a bound session that no rule uses are removed.
 */
export function canonical(world: World, forgets: boolean): { readonly key: string; readonly world: World } {
  const plain = forgets ? plainest(world) : world;
  const states = statesOf(plain);
  const tokens = tokensOf(plain);
  const times = [
    ...states.flatMap((s) => [s.siblingsSince, s.childMintedAt, s.childServedAt]),
    ...tokens.map(({ issuedAt }) => issuedAt),
    ...(plain.key ? [plain.key.since] : []),
  ].filter((time) => time > CREATED && time <= 0);
  const closer = drawnTogether(times, 2 * R);
  const places = placesOf([...states, ...tokens].map(({ generation }) => generation));
  const names = new Map<string, string>([["", ""]]);
  const requests = plain.requests.toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
  const sorted = { ...plain, requests, stale: unique(plain.stale), loot: unique(plain.loot) };
  for (const nonce of [...noncesOf(sorted), ...sorted.requests.map((r) => r.nonce)]) {
    if (!names.has(nonce)) names.set(nonce, NONCES[names.size - 1] ?? "");
  }
  const reached = mapped(sorted, {
    time: (time) => (time > CREATED && time <= 0 ? closer(time) : time),
    generation: (g) => places.get(g) ?? g,
    nonce: (n) => names.get(n) ?? "",
  });
  return { key: JSON.stringify(reached), world: reached };
}

/** Maps generations to smaller numbers with the same order, and with the same distances up to 4. */
function placesOf(generations: readonly number[]): Map<number, number> {
  const places = new Map<number, number>();
  let place = 4;
  let last: number | undefined;
  for (const generation of [...new Set(generations)].sort((a, b) => a - b)) {
    place += Math.min(4, generation - (last ?? generation));
    last = generation;
    places.set(generation, place);
  }
  return places;
}

/**
 * Returns whether the session stays bound even after a failover. A binding at the creation is also in the replica, but a later binding may
 * be missing there.
 */
const isBoundForGood = ({ key, replica }: World) => replica === undefined || (key?.since ?? 0) <= CREATED;

/** The time that replaces the times of all bindings after the creation, because rules do not distinguish them. */
const BOUND = storeMs(-5 * R);

/**
 * Reduces a bound session to the facts that rules use: the generation of a token, whether it was issued before the binding, and whether the
 * reuse interval since the creation of the current successor (child) is over. Rules use nonces and the times of siblings only for requests
 * without a proof, which are refused earlier.
 */
function boundWorld(world: World, key: Key): World {
  const since = key.since <= CREATED ? CREATED : BOUND;
  const { generation } = world.state;
  const isEarly = world.replica === undefined;
  const token = (t: Token): Token => ({
    generation: isEarly ? Math.max(generation - 1, t.generation) : t.generation,
    nonce: "",
    issuedAt: since === BOUND && t.issuedAt < key.since ? storeMs(BOUND - 1) : since,
  });
  const stored = (s: RotationState): RotationState => ({
    generation: s.generation,
    nonce: "",
    siblingsSince: CREATED,
    childNonce: "",
    childMintedAt: s.childMintedAt >= -R ? s.childMintedAt : CREATED,
    childServedAt: CREATED,
  });
  return {
    ...world,
    state: stored(world.state),
    key: { ...key, since },
    file: token(world.file),
    stale: world.stale.map(token),
    requests: world.requests.map((r) => ({ token: token(r.token), nonce: "", response: token(r.response) })),
    loot: world.loot.map(token),
    replica: world.replica && stored(world.replica),
  };
}

/** Reduces a session that is not bound. If a token is older than the newest one that its client has used, rules only use its generation. */
function unboundWorld(world: World): World {
  const { generation } = world.state;
  const token = (t: Token): Token =>
    t.generation < generation
      ? { generation: Math.max(generation - 2, t.generation), nonce: "", issuedAt: later(CREATED, -1) }
      : t;
  return {
    ...world,
    file: token(world.file),
    stale: world.stale.map(token),
    requests: world.requests.map((r) => ({ ...r, token: token(r.token), response: token(r.response) })),
    loot: world.loot.map(token),
  };
}

function plainest(world: World): World {
  if (world.key !== undefined) return isBoundForGood(world) ? boundWorld(world, world.key) : world;
  return world.replica === undefined ? unboundWorld(world) : world;
}

function unique(tokens: readonly Token[]): Token[] {
  const found = new Map(tokens.map((t) => [`${t.generation} ${t.nonce} ${t.issuedAt}`, t]));
  return [...found].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, t]) => t);
}
