/**
 * When two worlds of browser.ts have the same future. The rule compares now with `childMintedAt` and `childServedAt` (by R),
 * issue times with each other (their order), generations by their distance, nonces by equality. So a world keeps its future when
 * - generations shift together, and a distance that no rule tells apart shrinks;
 * - nonces are renamed;
 * - times older than R, and issue times before the child's, keep no more than their order;
 * - what a token can no longer be asked about is forgotten.
 */
import type { RotationState, PresentedToken as Token } from "../../../src/session/rotation.ts";
import type { World } from "./browser.ts";
import { longAgo, representative, type Time } from "./time.ts";

const NONCES = Array.from("abcdefghijklmnopqrstuvwxyz");

export function freeNonce(world: World): string {
  const taken = new Set(noncesOf(world));
  for (const { nonce } of world.requests) taken.add(nonce);
  const free = NONCES.find((nonce) => !taken.has(nonce));
  if (free === undefined) throw new Error("too few nonces");
  return free;
}

export function canonical(world: World, time: Time): { readonly key: string; readonly world: World } {
  return renamed(retimed(forgotten(world), time));
}

const tokensOf = ({ jar, requests }: World): Token[] => [
  jar,
  ...requests.flatMap(({ token, answer }) => (answer === undefined ? [token] : [token, answer])),
];
const statesOf = ({ state, replica }: World): RotationState[] => (replica === undefined ? [state] : [state, replica]);
const noncesOf = (world: World): string[] => [
  ...statesOf(world).flatMap(({ nonce, childNonce }) => [nonce, childNonce]),
  ...tokensOf(world).map(({ nonce }) => nonce),
];

function mapped(world: World, stored: (s: RotationState) => RotationState, token: (t: Token) => Token): World {
  const { state, jar, requests, replica } = world;
  return {
    state: stored(state),
    jar: token(jar),
    requests: requests.map((r) => ({ ...r, token: token(r.token), answer: r.answer && token(r.answer) })),
    replica: replica && stored(replica),
  };
}

/** Generations from small numbers on; of a token, nothing but what the rules may still ask. */
function forgotten(world: World): World {
  const { state, replica } = world;
  if (replica !== undefined) return closer(world);
  const { nonce: confirmed, siblingsSince, childMintedAt } = state;
  const since = childMintedAt - 1;
  return mapped(
    world,
    (s) => ({ ...s, generation: 2, siblingsSince: since }),
    ({ generation, nonce, issuedAt }) => {
      const ahead = generation - state.generation;
      if (ahead < 0) return { generation: Math.max(0, 2 + ahead), nonce: "", issuedAt: since };
      const still = ahead === 0 ? issuedAt >= siblingsSince : issuedAt >= childMintedAt;
      return {
        generation: Math.min(4, 2 + ahead),
        nonce: ahead > 0 || nonce === confirmed ? nonce : "",
        issuedAt: (ahead > 0 ? childMintedAt : since) - (still ? 0 : 2),
      };
    },
  );
}

/** With a replica, tokens are measured against both states: distances of four generations are as good as more. */
function closer(world: World): World {
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
  return mapped(
    world,
    (s) => ({ ...s, generation: generation(s.generation) }),
    (t) => ({ ...t, generation: generation(t.generation) }),
  );
}

function retimed(world: World, time: Time): World {
  const old = (at: number) => at < -2 * time.half;
  const states = statesOf(world);
  const youngest = states.map((s) => s.childMintedAt).filter((at) => !old(at));
  const since = Math.min(...youngest);
  const issued = [
    ...tokensOf(world).map((t) => t.issuedAt),
    ...states.flatMap((s) => [s.siblingsSince, s.childMintedAt]),
  ];
  const order = [...new Set(issued.filter((at) => old(at) || at < since))].sort((a, b) => b - a);
  const clocks = [
    ...states.map((s) => s.childServedAt),
    ...world.requests.map((r) => r.sentAt),
    ...issued.filter((at) => at >= since),
  ];
  const region = representative(
    clocks.filter((at) => !old(at)),
    time,
  );
  const clock = (at: number) => (old(at) ? longAgo(time) : region(at));
  const issue = (at: number) => {
    const rank = order.indexOf(at);
    return rank < 0 ? region(at) : longAgo(time) * (1 + rank);
  };
  const retold = mapped(
    world,
    (s) => ({
      ...s,
      siblingsSince: issue(s.siblingsSince),
      childMintedAt: issue(s.childMintedAt),
      childServedAt: clock(s.childServedAt),
    }),
    (t) => ({ ...t, issuedAt: issue(t.issuedAt) }),
  );
  return { ...retold, requests: retold.requests.map((r) => ({ ...r, sentAt: region(r.sentAt) })) };
}

/** Names by first appearance, the requests in an order of their own. Requests that look alike may cost a state twice. */
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
  const told = [...world.requests]
    .sort((a, b) => rough(a) - rough(b))
    .map((r) => {
      const request = {
        ...r,
        token: token(r.token),
        answer: r.answer && token(r.answer),
        nonce: used.has(r.nonce) ? name(r.nonce) : "",
      };
      const answer = request.answer === undefined ? "" : tokenKey(request.answer);
      return { request, key: `${tokenKey(request.token)}@${request.sentAt}${request.nonce}>${answer}` };
    })
    .sort((a, b) => (a.key < b.key ? -1 : Number(a.key > b.key)));
  const key = [stateKey(state), replica && stateKey(replica), tokenKey(jar), ...told.map((r) => r.key)].join("|");
  return { key, world: { state, replica, jar, requests: told.map(({ request }) => request) } };
}

const rough = ({ token, sentAt, answer }: World["requests"][number]) =>
  sentAt +
  1e3 * token.generation +
  1e5 * token.issuedAt +
  (answer === undefined ? 0 : 1e10 * (answer.generation - answer.issuedAt));
const tokenKey = ({ generation, nonce, issuedAt }: Token) => `${generation}${nonce}${issuedAt}`;
const stateKey = (s: RotationState) =>
  `${s.generation}${s.nonce}${s.childNonce}${s.siblingsSince}${s.childMintedAt}${s.childServedAt}`;
