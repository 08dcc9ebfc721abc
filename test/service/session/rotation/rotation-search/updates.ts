/**
 * A model of updates during refreshes. A session says a number, which each update raises, so that what says less is out of date. Searches look
 * for two things: an access token that says less than an update with `refresh` that was acknowledged, and is accepted; and an access token that
 * is refused although it says what its session says.
 *
 * Up to two refreshes are in flight, with any token that the session may still accept, and their scripts may run at any time and repeatedly, as
 * may those of up to three updates and of a logout. Every access token that was ever signed may be presented at any time: to a service that
 * asks the store (introspection), and to one that has read the log. A store that is `atomic` reads what a token says in the step that rotates,
 * and writes the mark in the step that updates. The others have races, which the search must find.
 */
import { type decide, firstState, type RotationState } from "../../../../../src/service/session/rotation/rotation.ts";
import { countVersion, isStale } from "../../../../../src/service/session/version.ts";
import type { Model, Step } from "./explore.ts";
import { NOW } from "./time.ts";
import { LONG_AGO, plain, R } from "./young.ts";

/** How the store works: the second reads claims before it rotates, the third signs by a version read later, the last logs marks later. */
export type UpdatingStore = "atomic" | "claims are read before" | "the version is read later" | "marks come later";

type Says = { readonly says: number; readonly version: number; readonly staleBelow: number };
type AccessToken = { readonly says: number; readonly sv: number };
/** A refresh in flight. `read` is what it has read before it rotates, `signed` what it has read when it rotated, where the token comes later. */
type Refresh = { readonly ahead: number; readonly read?: Says; readonly signed?: number };
/** An update with `refresh` or without, which raises what the session says to `to`. `ran` is true after its step. */
type Update = { readonly to: number; readonly refresh: boolean; readonly ran: boolean };

export type Updating = {
  /** Undefined after the logout. */
  readonly stored: (Says & { readonly state: RotationState }) | undefined;
  /** The version of the last mark in the log. */
  readonly logged: number;
  /** What a mark that is still to be logged says. */
  readonly due: number;
  readonly refreshes: readonly Refresh[];
  readonly updates: readonly Update[];
  readonly tokens: readonly AccessToken[];
  /** What the latest acknowledged update with `refresh` says: no token that says less may be accepted. */
  readonly promised: number;
};

const MOST_UPDATES = 3;
const MOST_REFRESHES = 2;

export function updates(rule: typeof decide, store: UpdatingStore): Model<Updating> {
  const versionless = ({ version, staleBelow, ...rest }: NonNullable<Updating["stored"]>) => ({
    ...rest,
    ...(version > 0 && { version }),
    ...(staleBelow > 0 && { staleBelow }),
  });

  /** Returns undefined if a token is accepted that is out of date, or refused although it is current. */
  function checked(world: Updating): Updating | undefined {
    for (const { says, sv } of world.tokens) {
      const refusedByLog = isStale({ sv }, { staleBelow: world.logged });
      const { stored } = world;
      const refusedByStore = stored === undefined || isStale({ sv }, stored);
      if (says < world.promised && !(refusedByLog && refusedByStore)) return undefined;
      if (stored !== undefined && says === stored.says && (refusedByLog || refusedByStore)) return undefined;
    }
    return world;
  }

  function update(world: Updating, at: number, { to, refresh }: Update): Step<Updating> {
    const label = () => `an update to ${to} ${refresh ? "with" : "without"} refresh runs`;
    const { stored } = world;
    // The session has ended, or a later update has run: by its etag this one is refused. Neither is acknowledged.
    if (stored === undefined || to < stored.says) return { label, world };
    const updates = world.updates.with(at, { to, refresh, ran: true });
    const { session, needsMark } = countVersion(versionless(stored), stored.says !== to, refresh);
    const after = { ...stored, says: to, version: session.version ?? 0, staleBelow: session.staleBelow ?? 0 };
    const mark = needsMark ? after.version : 0;
    const isLate = store === "marks come later";
    const marks = isLate ? { due: Math.max(world.due, mark) } : { logged: Math.max(world.logged, mark) };
    return { label, world: checked({ ...world, ...marks, stored: after, updates }) };
  }

  const issue = (world: Updating, token: AccessToken): Updating | undefined =>
    checked({ ...world, tokens: [...world.tokens, token] });

  function* refresh(world: Updating, at: number, sent: Refresh): Iterable<Step<Updating>> {
    const refreshes = world.refreshes.toSpliced(at, 1);
    yield { label: () => "a refresh is lost", world: { ...world, refreshes } };
    const { stored } = world;
    if (stored === undefined) return;
    if (sent.signed !== undefined) {
      const token = { says: sent.signed, sv: stored.version };
      yield { label: () => "a token is signed by the version of now", world: issue({ ...world, refreshes }, token) };
      return;
    }
    if (store === "claims are read before" && sent.read === undefined) {
      const { says, version, staleBelow } = stored;
      const read = { ...sent, read: { says, version, staleBelow } };
      yield { label: () => "a refresh reads", world: { ...world, refreshes: world.refreshes.with(at, read) } };
      return;
    }
    const { ahead } = sent;
    const generation = stored.state.generation + ahead;
    const nonce = ahead === 1 ? stored.state.childNonce : stored.state.nonce;
    const decision = rule(stored.state, { generation, nonce, issuedAt: LONG_AGO }, "new", NOW, R);
    const label = () => `a refresh runs: ${decision.outcome}`;
    if (decision.outcome === "reuse") {
      yield { label, world: { ...world, stored: undefined, refreshes } };
      return;
    }
    // The script may run again: the refresh stays in flight.
    const rotated = { ...world, stored: { ...stored, state: decision.next } };
    if (store === "the version is read later") {
      yield { label, world: { ...rotated, refreshes: [...refreshes, { ahead, signed: stored.says }] } };
      return;
    }
    const says = sent.read?.says ?? stored.says;
    yield { label, world: issue(rotated, { says, sv: stored.version }) };
  }

  return {
    start: {
      stored: { state: firstState("first"), says: 0, version: 0, staleBelow: 0 },
      ...{ logged: 0, due: 0, promised: 0 },
      ...{ refreshes: [], updates: [], tokens: [{ says: 0, sv: 0 }] },
    },
    *steps(world) {
      const { stored, refreshes, updates, due } = world;
      if (stored !== undefined) {
        const state = { ...stored.state, childMintedAt: LONG_AGO, childServedAt: LONG_AGO };
        yield { label: () => "more than R passes", world: { ...world, stored: { ...stored, state } } };
      }
      if (refreshes.length < MOST_REFRESHES) {
        for (const ahead of [-1, 0, 1, 2]) {
          yield { label: () => "a refresh is sent", world: { ...world, refreshes: [...refreshes, { ahead }] } };
        }
      }
      for (const [at, sent] of refreshes.entries()) yield* refresh(world, at, sent);
      if (updates.length < MOST_UPDATES) {
        for (const refresh of [true, false]) {
          const sent = { to: updates.length + 1, refresh, ran: false };
          yield { label: () => `an update to ${sent.to} is sent`, world: { ...world, updates: [...updates, sent] } };
        }
      }
      for (const [at, sent] of updates.entries()) {
        yield update(world, at, sent);
        if (!sent.ran || !sent.refresh || sent.to <= world.promised) continue;
        const label = () => `the update to ${sent.to} is acknowledged`;
        yield { label, world: checked({ ...world, promised: sent.to }) };
      }
      if (due > world.logged) yield { label: () => "the mark is logged", world: checked({ ...world, logged: due }) };
      yield { label: () => "the session ends", world: { ...world, stored: undefined } };
    },
    canonical(world) {
      const { stored } = world;
      const tokens = new Map(world.tokens.map((token) => [`${token.says} ${token.sv}`, token]));
      const reduced: Updating = {
        ...world,
        stored: stored && { ...stored, state: plain(stored.state) },
        // Only the order of tokens and of refreshes differs between these states and those that they stand for.
        tokens: [...tokens].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, token]) => token),
        refreshes: world.refreshes.toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1)),
      };
      return { key: JSON.stringify(reduced), world: reduced };
    },
  };
}
