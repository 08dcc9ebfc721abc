/**
 * Reduces the states of the model in world.ts, so that states with the same future become equal. The rules compare the present time with
 * the issue time of a cookie and with `since`, the time at which the device got its present state. They also check whether a token was
 * issued at most two reuse intervals (2 R) after the first use of the key. So the issue time of a token is reduced to early or late, and
 * all times that are too old to affect any of these comparisons become equal. If the store has a replica, tokens are compared with the
 * states of the master and of the replica, so the distances between times are kept.
 */
import { drawnTogether } from "../../rotation/rotation-search/time.ts";
import { type Cookie, type Device, type Jar, type Key, LIFE, NEVER_FRESH, R, THIEF, type World } from "./state.ts";

/**
 * A time so long ago that the rules treat it like any earlier time. It is more than three reuse intervals (R) ago: a token gets the same
 * successor for up to R, and that successor is compared with times up to 2 R before its creation.
 */
const LONG_AGO = -3 * R - 2;
const EARLY = 2 * LONG_AGO;
const LATE = 0;

export function canonical(world: World, exact: boolean): { readonly key: string; readonly world: World } {
  const reduced = world.replica === undefined && !exact ? simple(world) : drawn(world);
  const refreshes = reduced.refreshes
    .map((refresh) => ({ refresh, key: JSON.stringify(refresh) }))
    .sort((one, other) => (one.key < other.key ? -1 : Number(one.key > other.key)))
    .map(({ refresh }) => refresh);
  const named = renamed({ ...reduced, refreshes });
  return { key: JSON.stringify(named), world: named };
}

const NAMES = Array.from("abcdefghijklmnopqrstuvwxyz");

/** Returns the keys of the browser to which any part of the world refers. The order depends only on where the keys occur. */
function keysOf({ device, jar, key, refreshes, call, thief, replica }: World): Key[] {
  const cookies = [jar.cookie, ...refreshes.map(({ cookie }) => cookie), thief?.cookie];
  const keys = [
    device?.key,
    key,
    jar.mark,
    thief?.mark,
    call?.key,
    replica?.device?.key,
    ...cookies.map((one) => one?.key),
  ];
  return [...new Set(keys)].filter((one) => one !== undefined && one !== THIEF) as Key[];
}

/** Returns a name for a new key that is not yet used in the world. */
export function freshKey(world: World): Key {
  const taken = new Set(keysOf(world));
  const free = NAMES.find((name) => !taken.has(name));
  if (free === undefined) throw new Error("too few names");
  return free;
}

/** Returns the world with its keys renamed in the order in which they occur, because the rules do not depend on the names of keys. */
function renamed(world: World): World {
  const names = new Map(keysOf(world).map((key, at) => [key, NAMES[at] ?? key]));
  const name = (key: Key) => names.get(key) ?? key;
  const keyed = <T extends { readonly key: Key } | undefined>(one: T): T => one && { ...one, key: name(one.key) };
  const { device, jar, key, refreshes, call, thief, replica } = world;
  const jarOf = <T extends Jar>(one: T): T => ({ ...one, cookie: keyed(one.cookie), mark: one.mark && name(one.mark) });
  return {
    ...world,
    device: keyed(device),
    jar: jarOf(jar),
    key: key && name(key),
    refreshes: refreshes.map((refresh) => ({ ...refresh, cookie: keyed(refresh.cookie) })),
    call: keyed(call),
    thief: thief && jarOf(thief),
    replica: replica && { device: keyed(replica.device) },
  };
}

function simple(world: World): World {
  const { device } = world;
  const isLate = (issuedAt: number) => device?.state === "bound" && issuedAt > device.since + 2 * R;
  const token = (issuedAt: number) => (isLate(issuedAt) ? LATE : EARLY);
  return mapped(world, token, (since) => Math.max(since, LONG_AGO));
}

function drawn(world: World): World {
  const { device, jar, refreshes, thief, replica } = world;
  const issued = refreshes.flatMap((r) => [r.issuedAt, ...(r.response === undefined ? [] : [r.response])]);
  const sinces = [device, replica?.device].flatMap((one) => one?.since ?? []);
  const draw = drawnTogether([jar.issuedAt, ...(thief ? [thief.issuedAt] : []), ...issued, ...sinces], 2 * R + 1);
  return mapped(world, draw, draw);
}

function mapped(world: World, token: (issuedAt: number) => number, since: (since: number) => number): World {
  const { device, jar, refreshes, thief, replica } = world;
  const cookie = (one: Cookie | undefined) => one && (one.issuedAt < -LIFE ? { ...one, issuedAt: NEVER_FRESH } : one);
  const of = (one: Device | undefined) => one && { ...one, since: since(one.since) };
  return {
    ...world,
    device: of(device),
    mintedAt: Math.max(world.mintedAt, -R - 1),
    jar: { ...jar, issuedAt: token(jar.issuedAt), cookie: cookie(jar.cookie) },
    refreshes: refreshes.map((r) => ({
      ...r,
      issuedAt: token(r.issuedAt),
      cookie: cookie(r.cookie),
      response: r.response === undefined ? undefined : token(r.response),
    })),
    thief: thief && {
      ...thief,
      issuedAt: token(thief.issuedAt),
      cookie: cookie(thief.cookie),
      own: cookie(thief.own),
      copiedAt: Math.max(thief.copiedAt, -LIFE - 1),
    },
    replica: replica && { device: of(replica.device) },
  };
}
