/** Reduces the states of the model in pages.ts, so that states with the same future become equal. */
import type { RotationState, TokenFields as Token } from "../../../../../src/service/session/rotation/rotation.ts";
import { latest, type StoreMs, storeMs } from "../../../../../src/service/session/time.ts";
import type { Pages } from "./pages.ts";
import { drawnTogether, longAgo, type Time } from "./time.ts";

export const isSame = (one: Token, other: Token) => one.generation === other.generation && one.nonce === other.nonce;

export const mapped = (
  world: Pages,
  stored: (s: RotationState) => RotationState,
  token: (t: Token) => Token,
): Pages => ({
  state: world.state && stored(world.state),
  jar: token(world.jar),
  requests: world.requests.map((r) => ({ ...r, token: token(r.token), response: r.response && token(r.response) })),
  shared: world.shared.map((s) => ({ ...s, token: token(s.token), response: token(s.response) })),
});

export const tokensOf = ({ jar, requests, shared }: Pages): readonly Token[] => [
  jar,
  ...requests.flatMap(({ token, response }) => (response === undefined ? [token] : [token, response])),
  ...shared.flatMap(({ token, response }) => [token, response]),
];

/**
 * Reduces a state ("world") in the way in which browser-canonical.ts reduces states with a failover. All generations shift together.
 * Distances of four or more generations become equal, and so do distances of two or more reuse intervals (2 R). After the logout all tokens
 * become equal.
 */
export function canonical(full: Pages, { half }: Time): { readonly key: string; readonly world: Pages } {
  if (full.state === undefined) return signedOut(full);
  const world = forgotten(full, full.state, longAgo({ dense: false, half }));
  const generations = [full.state.generation, ...tokensOf(world).map(({ generation }) => generation)];
  const places = new Map<number, number>();
  let place = 2;
  let last: number | undefined;
  for (const generation of [...new Set(generations)].sort((a, b) => a - b)) {
    place += Math.min(4, generation - (last ?? generation));
    last = generation;
    places.set(generation, place);
  }
  const { siblingsSince, childMintedAt } = full.state;
  const times = [siblingsSince, childMintedAt, ...tokensOf(world).map(({ issuedAt }) => issuedAt)];
  const drawn = drawnTogether(times, 4 * half);
  const generation = (g: number) => places.get(g) ?? 0;
  const near = mapped(
    world,
    (s) => ({
      ...s,
      generation: generation(s.generation),
      siblingsSince: drawn(s.siblingsSince),
      childMintedAt: drawn(s.childMintedAt),
      childServedAt: latest(s.childServedAt, storeMs(-2 * half - 1)),
    }),
    (t) => ({ ...t, generation: generation(t.generation), issuedAt: drawn(t.issuedAt) }),
  );
  return renamed(near);
}

/** Removes facts that no rule and no process will use any more. */
function forgotten(world: Pages, state: RotationState, far: StoreMs): Pages {
  const known = (token: Token): Token => {
    const ahead = token.generation - state.generation;
    if (ahead > 0) return token;
    if (ahead < 0 || token.nonce === state.nonce) return { ...token, issuedAt: far };
    return { ...token, issuedAt: token.issuedAt >= state.siblingsSince ? state.siblingsSince : far };
  };
  const plain = mapped(world, (s) => s, known);
  const requests = plain.requests.map((r) => (r.response ? { ...r, token: r.response } : r));
  // The reduced state keeps the result that a process shares only while a request with the token of that result is still possible.
  const mayCome = [
    plain.jar,
    ...requests.map(({ token, response }) => response ?? token),
    ...plain.shared.map(({ response }) => response),
  ];
  const shared = plain.shared.filter(({ token }) => mayCome.some((one) => isSame(one, token)));
  return { ...plain, requests, shared };
}

function signedOut(world: Pages): { readonly key: string; readonly world: Pages } {
  const nothing: Token = { generation: 0, nonce: "", issuedAt: storeMs(0) };
  return renamed(
    mapped(
      world,
      (s) => s,
      () => nothing,
    ),
  );
}

/** Renames nonces in the order in which they occur, after sorting the requests by everything else. */
function renamed(world: Pages): { readonly key: string; readonly world: Pages } {
  const rough = (value: object) => JSON.stringify(value, (key, part) => (key === "nonce" ? undefined : part));
  const sorted = <T extends object>(list: readonly T[]) =>
    list.map((one) => ({ one, key: rough(one) })).sort((a, b) => (a.key < b.key ? -1 : Number(a.key > b.key)));
  const ordered = {
    ...world,
    requests: sorted(world.requests).map(({ one }) => one),
    shared: sorted(world.shared).map(({ one }) => one),
  };
  const names = new Map<string, string>([["", ""]]);
  const name = (nonce: string) => {
    const known = names.get(nonce) ?? String.fromCharCode(96 + names.size);
    names.set(nonce, known);
    return known;
  };
  const plain = mapped(
    ordered,
    (s) => ({ ...s, nonce: name(s.nonce), childNonce: name(s.childNonce) }),
    (t) => ({ ...t, nonce: name(t.nonce) }),
  );
  return { key: JSON.stringify(plain), world: plain };
}
