/**
 * Reduces the states of the model in browser.ts, so that states with the same future become equal. R is the reuse interval. The stored
 * state has three times: the current successor token (child) was created at `childMintedAt` and last returned at `childServedAt`; tokens of
 * the current generation that were issued since `siblingsSince` count as used by the client. The rules compare
 * - the present time with `childMintedAt` and `childServedAt` (by R) and with `siblingsSince` (by 2 R);
 * - the issue time of a token with `childMintedAt` (by 2 R) and with `siblingsSince` (by order);
 * - generations by their distance, and nonces by equality.
 *
 * So a state keeps its future when all generations shift together, when nonces are renamed, when a distance that no rule distinguishes
 * shrinks, and when a time or another fact is removed that no rule will use any more.
 */
import type { RotationState, TokenFields as Token } from "../../../../../src/service/session/rotation/rotation.ts";
import { later, latest, type StoreMs, storeMs } from "../../../../../src/service/session/time.ts";
import type { World } from "./browser.ts";
import { drawnTogether, longAgo, representative, type Time } from "./time.ts";

const NONCES = Array.from("abcdefghijklmnopqrstuvwxyz");

export function freeNonce(world: World): string {
  const taken = new Set(noncesOf(world));
  for (const { nonce } of world.requests) taken.add(nonce);
  const free = NONCES.find((nonce) => !taken.has(nonce));
  if (free === undefined) throw new Error("too few nonces");
  return free;
}

/**
 * Reduces a state ("world") to one that represents all states with the same future.
 *
 * @param ordered whether it matters which of two tokens is newer
 */
export function canonical(world: World, time: Time, ordered = false): { readonly key: string; readonly world: World } {
  if (world.replica !== undefined) return renamed(closer(world, time));
  if (!ordered) return renamed(forgotten(world, time));
  const whole = mapped(
    world,
    (s) => s,
    (t) => ({ ...t, issuedAt: storeMs(Math.floor(t.issuedAt)) }),
  );
  return renamed(ranked(world, forgotten(whole, time)));
}

/**
 * The reduction may give several tokens the same issue time. This function makes these times slightly different, so that the order of the
 * tokens is kept. The differences are too small to change the result of a rule.
 */
function ranked(before: World, after: World): World {
  const looks = tokensOf(after).map(({ generation, issuedAt }) => `${generation}@${issuedAt}`);
  const ages = tokensOf(before).map(({ generation, issuedAt }) => generation * 1e6 + issuedAt);
  let at = 0;
  return mapped(
    after,
    (s) => s,
    (token) => {
      const own = at++;
      const earlier = ages.filter((age, other) => looks[other] === looks[own] && age < (ages[own] ?? 0));
      return { ...token, issuedAt: later(token.issuedAt, new Set(earlier).size / 64) };
    },
  );
}

/**
 * Returns all tokens of a world, in the order in which `mapped` visits them. A search calls this millions of times, and arrays that are
 * filled by loops take a fraction of the time of arrays that are spread into others.
 */
function tokensOf({ jar, spare, requests, stuck }: World): Token[] {
  const tokens = [jar];
  if (spare !== undefined) tokens.push(spare);
  for (const { token, response } of requests) {
    tokens.push(token);
    if (response !== undefined) tokens.push(response);
  }
  if (stuck !== undefined) tokens.push(stuck);
  return tokens;
}
const statesOf = ({ state, replica }: World): RotationState[] => (replica === undefined ? [state] : [state, replica]);
function noncesOf(world: World): string[] {
  const nonces: string[] = [];
  for (const { nonce, childNonce } of statesOf(world)) nonces.push(nonce, childNonce);
  for (const { nonce } of tokensOf(world)) nonces.push(nonce);
  return nonces;
}

function mapped(world: World, stored: (s: RotationState) => RotationState, token: (t: Token) => Token): World {
  const { state, jar, spare, requests, replica, stuck } = world;
  return {
    state: stored(state),
    jar: token(jar),
    spare: spare && token(spare),
    requests: requests.map((r) => ({ ...r, token: token(r.token), response: r.response && token(r.response) })),
    replica: replica && stored(replica),
    stuck: stuck && token(stuck),
  };
}

const isConfirmed = (t: Token, { generation, nonce, siblingsSince }: RotationState) =>
  t.generation === generation && (t.nonce === nonce || t.issuedAt >= siblingsSince);

/** Returns which of the world's times the rules may still compare. */
function asked({ state, ...world }: World, { half }: Time) {
  const R = 2 * half;
  const tokens = tokensOf({ state, ...world });
  // Another successor token (child) is created only if a confirmed token is presented, which is one that the client has used. Its time of
  // creation is then compared with the issue times of tokens.
  const mayRecover = tokens.some((t) => isConfirmed(t, state));
  const mayBeLate = tokens.some((t) => t.generation <= state.generation && !isConfirmed(t, state));
  const served = state.childServedAt >= -R;
  // The time at which the successor (child) was created may matter to the next rotation as long as the successor counts as recently
  // returned, because `siblingsSince` is then set to that time.
  const mayCount = served && tokens.some(({ nonce }) => nonce !== state.childNonce);
  return {
    minted: state.childMintedAt >= -(mayRecover || mayCount ? 2 * R : R),
    served,
    since: mayBeLate && state.siblingsSince <= 0 && state.siblingsSince >= -2 * R,
    issued: ({ generation, nonce, issuedAt }: Token) =>
      issuedAt >= -2 * R &&
      (generation > state.generation + 1 ||
        (generation === state.generation + 1 &&
          mayRecover &&
          nonce !== state.childNonce &&
          issuedAt < state.childMintedAt)),
    mayRecover,
  };
}

/** Returns the times in the world that a rule may still compare. */
export function clocks(world: World, time: Time): number[] {
  const { minted, served, since, issued } = asked(world, time);
  const { childMintedAt, childServedAt, siblingsSince } = world.state;
  const times: number[] = [];
  if (minted) times.push(childMintedAt);
  if (served) times.push(childServedAt);
  if (since) times.push(siblingsSince);
  for (const token of tokensOf(world)) if (issued(token)) times.push(token.issuedAt);
  for (const { sentAt } of world.requests) times.push(sentAt);
  return times;
}

/** Returns the world with small generation numbers, and without facts about times and tokens that no rule will use any more. */
function forgotten(world: World, time: Time): World {
  const { state } = world;
  const { minted, served, since, issued, mayRecover } = asked(world, time);
  const region = representative(clocks(world, time), time);
  const far = longAgo(time);
  const childMintedAt = minted ? region(state.childMintedAt) : far;
  const siblingsSince = since ? region(state.siblingsSince) : far;
  const interval = 4 * time.half;

  /**
   * Replaces the issue time of a successor token (child) by one that only tells whether the token is outdated, or may become outdated.
   * Tokens of later generations are treated in the same way, because they may become successors.
   */
  function childIssued(token: Token): StoreMs {
    if (token.generation > state.generation + 1) return issued(token) ? region(token.issuedAt) : storeMs(-interval - 1);
    if (token.nonce === state.childNonce || token.issuedAt >= state.childMintedAt) return childMintedAt;
    if (token.issuedAt < state.childMintedAt - interval) return storeMs(2 * far);
    if (issued(token)) return region(token.issuedAt);
    return storeMs(mayRecover ? Math.min(childMintedAt, -interval) - 1 : childMintedAt - 1);
  }
  const retold = mapped(
    world,
    (s) => ({
      ...s,
      generation: 2,
      siblingsSince,
      childMintedAt,
      childServedAt: served ? region(s.childServedAt) : far,
    }),
    (token) => {
      const ahead = token.generation - state.generation;
      if (ahead < 0) return { generation: Math.max(0, 2 + ahead), nonce: "", issuedAt: far };
      if (ahead > 0) return { ...token, generation: Math.min(4, 2 + ahead), issuedAt: childIssued(token) };
      const counts = token.issuedAt >= state.siblingsSince;
      return {
        generation: 2,
        nonce: token.nonce === state.nonce ? token.nonce : "",
        issuedAt: later(siblingsSince, counts ? 0 : -1),
      };
    },
  );
  return { ...retold, requests: retold.requests.map((r) => ({ ...r, sentAt: region(r.sentAt) })) };
}

/**
 * Shortens the distances between generations and between times, for a store with a replica: tokens are then compared with the states of the
 * master and of the replica. A distance of four generations or of two reuse intervals (2 R) has the same effect as a longer one.
 */
function closer(world: World, time: Time): World {
  if (time.dense) throw new Error("failovers are searched on a grid");
  const all = [...statesOf(world), ...tokensOf(world)].map(({ generation }) => generation);
  const places = new Map<number, number>();
  let place = 2;
  let last: number | undefined;
  for (const generation of [...new Set(all)].sort((a, b) => a - b)) {
    place += Math.min(4, generation - (last ?? generation));
    last = generation;
    places.set(generation, place);
  }
  const generation = (g: number) => places.get(g) ?? 0;
  const issued = [
    ...tokensOf(world).map((t) => t.issuedAt),
    ...statesOf(world).flatMap((s) => [s.siblingsSince, s.childMintedAt]),
  ];
  const drawn = drawnTogether(issued, 4 * time.half);
  return mapped(
    world,
    (s) => ({
      ...s,
      generation: generation(s.generation),
      siblingsSince: drawn(s.siblingsSince),
      childMintedAt: drawn(s.childMintedAt),
      childServedAt: latest(s.childServedAt, storeMs(-2 * time.half - 1)),
    }),
    (t) => ({ ...t, generation: generation(t.generation), issuedAt: drawn(t.issuedAt) }),
  );
}

/**
 * Renames nonces in the order in which they occur, and sorts the requests. Requests that look alike may have two orders, so that one
 * state is counted twice.
 */
function renamed(world: World): { readonly key: string; readonly world: World } {
  const used = new Set(noncesOf(world));
  const names = new Map([["", ""]]);
  const name = (nonce: string) => {
    const known = names.get(nonce) ?? NONCES[names.size - 1] ?? "";
    names.set(nonce, known);
    return known;
  };
  const stored = (s: RotationState): RotationState => ({ ...s, nonce: name(s.nonce), childNonce: name(s.childNonce) });
  const token = (t: Token): Token => ({ ...t, nonce: name(t.nonce) });
  const state = stored(world.state);
  const replica = world.replica && stored(world.replica);
  const jar = token(world.jar);
  const spare = world.spare && token(world.spare);
  const stuck = world.stuck && token(world.stuck);
  const ordered = [...world.requests]
    .sort((a, b) => rough(a) - rough(b))
    .map((r) => {
      const request = {
        ...r,
        token: token(r.token),
        response: r.response && token(r.response),
        nonce: used.has(r.nonce) ? name(r.nonce) : "",
      };
      const response = request.response === undefined ? "" : tokenKey(request.response);
      return { request, key: `${tokenKey(request.token)}@${request.sentAt}${request.nonce}>${response}` };
    })
    .sort((a, b) => (a.key < b.key ? -1 : Number(a.key > b.key)));
  const key = [
    stateKey(state),
    replica && stateKey(replica),
    tokenKey(jar),
    spare && tokenKey(spare),
    stuck && tokenKey(stuck),
    ...ordered.map((r) => r.key),
  ].join("|");
  return { key, world: { state, replica, stuck, jar, spare, requests: ordered.map(({ request }) => request) } };
}

const rough = ({ token, sentAt, response }: World["requests"][number]) =>
  sentAt +
  1e3 * token.generation +
  1e5 * token.issuedAt +
  (response === undefined ? 0 : 1e10 * (response.generation - response.issuedAt));
const tokenKey = ({ generation, nonce, issuedAt }: Token) => `${generation}${nonce}${issuedAt}`;
const stateKey = (s: RotationState) =>
  `${s.generation}${s.nonce}${s.childNonce}${s.siblingsSince}${s.childMintedAt}${s.childServedAt}`;
