/**
 * A model in which every verb that changes a session's life meets every other. Support has the sessions `own` and `other`, and uses a
 * session of a user, `acting`, which ends with `own`. They are refreshed with any token that they may still accept, `acting` is updated,
 * and one more login of support comes to the limit of two sessions, of any kind. Searches look for
 *
 * - a third live session of support, or a login that was refused or ended more than one session;
 * - a login that ends the session that was used last, by a limit that ends the least recently used one;
 * - `acting` that is live although `own` has ended, and no note says that it has to end;
 * - an access token of `acting` that says less than an acknowledged update with `refresh` and is accepted, or says what its session says
 *   and is refused.
 *
 * Scripts may run at any time and repeatedly. The first kind of store is ours. The others have races, which the search must find.
 */
import { takeExcess, type WhenExceeded, windowOf } from "../../../../../src/service/session/admin/limit.ts";
import { type decide, firstState, type RotationState } from "../../../../../src/service/session/rotation/rotation.ts";
import { countVersion, isStale } from "../../../../../src/service/session/version.ts";
import type { Model, Step } from "./explore.ts";
import { NOW } from "./time.ts";
import { LONG_AGO, plain, R } from "./young.ts";

/** How the store works: the second looks for what is too many before it creates; the third ends by a limit without a note. */
export type LivingStore = "atomic" | "a login looks before it creates" | "a limit ends without a note";

const NAMES = ["own", "other", "third", "acting"] as const;
type Name = (typeof NAMES)[number];
const OF_SUPPORT = ["own", "other", "third"] as const;

type Stored = { readonly state: RotationState; readonly usedAt: number };
type Says = { readonly says: number; readonly version: number; readonly staleBelow: number };
type Refresh = { readonly of: Name; readonly ahead: number };
type Login = { readonly looked?: readonly Name[]; readonly outcome?: "created" | "refused" };

export type Life = {
  readonly stored: { readonly [name in Name]?: Stored };
  /** What `acting` says. It stays after the end, as log entries do. */
  readonly acting: Says;
  readonly isNoted: boolean;
  /** The number of uses so far, which orders them. */
  readonly uses: number;
  readonly refreshes: readonly Refresh[];
  readonly updatesRan: number;
  readonly promised: number;
  readonly tokens: readonly { readonly says: number; readonly sv: number }[];
  readonly login: Login;
};

const MAX_SESSIONS = 2;
const MOST_REFRESHES = 1;
const MOST_UPDATES = 2;

export function life(rule: typeof decide, store: LivingStore, whenExceeded: WhenExceeded): Model<Life> {
  const liveOf = ({ stored }: Life) => OF_SUPPORT.filter((name) => stored[name] !== undefined);

  function checked(world: Life): Life | undefined {
    if (liveOf(world).length > MAX_SESSIONS) return undefined;
    const acting = world.stored.acting;
    if (acting !== undefined && world.stored.own === undefined && !world.isNoted) return undefined;
    for (const { says, sv } of world.tokens) {
      const isRefused = acting === undefined || isStale({ sv }, world.acting);
      if (says < world.promised && !isRefused) return undefined;
      if (acting !== undefined && says === world.acting.says && isRefused) return undefined;
    }
    return world;
  }
  const step = (label: string, world: Life | undefined): Step<Life> => ({
    label: () => label,
    world: world && checked(world),
  });

  function without(world: Life, name: Name, hasNote = true): Life {
    const { [name]: _, ...stored } = world.stored;
    return { ...world, stored, isNoted: world.isNoted || (name === "own" && hasNote) };
  }

  function refresh(world: Life, at: number, { of, ahead }: Refresh): Step<Life> {
    const refreshes = world.refreshes.toSpliced(at, 1);
    const found = world.stored[of];
    if (found === undefined) return step(`a refresh of ${of} is refused`, { ...world, refreshes });
    const generation = found.state.generation + ahead;
    const nonce = ahead === 1 ? found.state.childNonce : found.state.nonce;
    const decision = rule(found.state, { generation, nonce, issuedAt: LONG_AGO }, "new", NOW, R);
    const label = `a refresh of ${of} runs: ${decision.outcome}`;
    if (decision.outcome === "reuse") return step(label, { ...without(world, of), refreshes });
    const uses = world.uses + 1;
    const stored = { ...world.stored, [of]: { state: decision.next, usedAt: uses } };
    const token = { says: world.acting.says, sv: world.acting.version };
    const tokens = of === "acting" ? [...world.tokens, token] : world.tokens;
    // The script may run again: the refresh stays in flight.
    return step(label, { ...world, stored, uses, tokens });
  }

  function update(world: Life, refreshes: boolean): Step<Life> {
    const label = `an update of acting ${refreshes ? "with" : "without"} refresh`;
    if (world.stored.acting === undefined) return step(`${label} is refused`, world);
    const { says, version, staleBelow } = world.acting;
    const before = { ...(version > 0 && { version }), ...(staleBelow > 0 && { staleBelow }) };
    const { session } = countVersion(before, true, refreshes);
    const acting = { says: says + 1, version: session.version ?? 0, staleBelow: session.staleBelow ?? 0 };
    const promised = refreshes ? acting.says : world.promised;
    return step(label, { ...world, acting, promised, updatesRan: world.updatesRan + 1 });
  }

  /** Returns those that the limit ends for one more session; undefined if it refuses that. */
  function excess(world: Life): readonly Name[] | undefined {
    const live = liveOf(world).map((name) => ({ name, usedAt: world.stored[name]?.usedAt ?? 0 }));
    const tooMany = live.length + 1 - MAX_SESSIONS;
    if (tooMany <= 0) return [];
    if (whenExceeded === "refuse") return undefined;
    const limit = { scope: "subject", maxSessions: MAX_SESSIONS, whenExceeded } as const;
    return takeExcess(live, tooMany, windowOf(limit)).map(({ name }) => name);
  }

  function create(world: Life, taken: readonly Name[]): Step<Life> {
    const label = taken.length === 0 ? "a login creates a session" : `a login ends ${taken.join(" and ")}`;
    const left = liveOf(world).filter((name) => !taken.includes(name));
    const usedAt = (name: Name) => world.stored[name]?.usedAt ?? 0;
    // The session that a user has just used must not be put out while an abandoned one is kept.
    const isUnfair =
      whenExceeded === "end_least_recently_used" &&
      taken.some((name) => left.some((other) => usedAt(other) < usedAt(name)));
    if (isUnfair || taken.length > 1) return step(label, undefined);
    const hasNote = store !== "a limit ends without a note";
    const after = taken.reduce((so, name) => without(so, name, hasNote), world);
    const uses = world.uses + 1;
    const third = { state: firstState("first"), usedAt: uses };
    return step(label, { ...after, stored: { ...after.stored, third }, uses, login: { outcome: "created" } });
  }

  function* login(world: Life): Iterable<Step<Life>> {
    const { looked, outcome } = world.login;
    if (outcome !== undefined) return;
    const found = looked ?? excess(world);
    if (found === undefined) {
      yield step("a login is refused", liveOf(world).length < MAX_SESSIONS ? undefined : refused(world));
    } else if (store === "a login looks before it creates" && looked === undefined) {
      yield step("a login looks", { ...world, login: { looked: found } });
    } else yield create(world, found);
  }
  const refused = (world: Life): Life => ({ ...world, login: { outcome: "refused" } });

  const start = { state: firstState("first"), usedAt: 0 };
  return {
    start: {
      stored: { own: start, other: start, acting: start },
      acting: { says: 0, version: 0, staleBelow: 0 },
      ...{ isNoted: false, uses: 0, updatesRan: 0, promised: 0 },
      ...{ refreshes: [], tokens: [{ says: 0, sv: 0 }], login: {} },
    },
    *steps(world) {
      const { stored, refreshes, updatesRan, isNoted } = world;
      yield* login(world);
      const live = NAMES.filter((name) => stored[name] !== undefined);
      const aged = live.map((name) => [name, older(stored[name] as Stored)]);
      yield step("more than R passes", { ...world, stored: Object.fromEntries(aged) });
      if (refreshes.length < MOST_REFRESHES) {
        for (const of of live) {
          for (const ahead of [-1, 0, 1, 2]) {
            yield step(`a refresh of ${of} is sent`, { ...world, refreshes: [...refreshes, { of, ahead }] });
          }
        }
      }
      for (const [at, sent] of refreshes.entries()) {
        yield refresh(world, at, sent);
        yield step(`a refresh of ${sent.of} is lost`, { ...world, refreshes: refreshes.toSpliced(at, 1) });
      }
      if (updatesRan < MOST_UPDATES) for (const with_ of [true, false]) yield update(world, with_);
      for (const name of live) yield step(`${name} is logged out`, without(world, name));
      if (isNoted && stored.acting !== undefined) yield step("acting ends by the note", without(world, "acting"));
    },
    canonical(world) {
      // Only the order of uses counts, and which states of rotation are young.
      const times = NAMES.map((name) => world.stored[name]?.usedAt ?? -1);
      const order = [...new Set(times)].filter((time) => time >= 0).sort((a, b) => a - b);
      const stored = Object.fromEntries(
        NAMES.flatMap((name) => {
          const found = world.stored[name];
          return found ? [[name, { state: plain(found.state), usedAt: order.indexOf(found.usedAt) }]] : [];
        }),
      );
      const tokens = new Map(world.tokens.map((token) => [`${token.says} ${token.sv}`, token]));
      const reduced: Life = {
        ...world,
        ...{ stored, uses: order.length - 1 },
        tokens: [...tokens].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, token]) => token),
      };
      return { key: JSON.stringify(reduced), world: reduced };
    },
  };
}

const older = ({ state, usedAt }: Stored): Stored => ({
  state: { ...state, childMintedAt: LONG_AGO, childServedAt: LONG_AGO },
  usedAt,
});
