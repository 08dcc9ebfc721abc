/**
 * Device binding: what the key of a device adds to rotation.
 *
 * A pure function decides whether a refresh may go on to the rules of rotation.ts. The embedded store calls it, the Redis script
 * (store/redis/lua/rotate.lua) implements the same, and a differential test compares the two. docs/device-binding.md has the rules and
 * the reasons; test/session/device-search found and guards them. All times are the store's.
 */
import type { DeviceBinding } from "./device-key.ts";
import type { PresentedToken } from "./rotation.ts";
import { later, type StoreMs } from "./time.ts";

/** What a refresh presents beside its token. */
export type DevicePresentation = {
  /** How long a device cookie is fresh, ms; also how long a session that requires a binding may go without one. */
  readonly lifeMs: number;
  /** From an authentic device cookie of this session, fresh or not. */
  readonly cookie: { readonly thumbprint: Uint8Array; readonly issuedAtMs: StoreMs } | undefined;
  /** The browser reports that it could not renew its device cookie. */
  readonly skipped: boolean;
};

/**
 * - `unproven`: goes on; there is nothing to prove (yet).
 * - `proven`: goes on; the device cookie is fresh and of the session's key. `first_use`: the same, and binds the key.
 * - `missing`: is refused, nothing changes. `required`: the same, since the session requires a binding and has none.
 * - `two_holders`: the session ends. The token was issued while nobody had to prove anything, and its holder has never had the key.
 */
export type DeviceVerdict = ServingVerdict | "missing" | "required" | "two_holders";

/** With these a refresh goes on to the rules of rotation. */
export type ServingVerdict = "unproven" | "proven" | "first_use";

/** A request of a client that knows nothing of device binding, to a store that asks for a key only where there is one. */
export const NO_PRESENTATION: DevicePresentation = {
  lifeMs: Number.POSITIVE_INFINITY,
  cookie: undefined,
  skipped: false,
};

type DeviceSubject = {
  readonly device?: DeviceBinding | undefined;
  readonly deviceRequired?: true | undefined;
  readonly createdAt: StoreMs;
};

/**
 * Decides on a refresh before its token is looked at.
 *
 * @param reuseIntervalMs R, ms
 */
export function judgeDevice(
  { device, deviceRequired, createdAt }: DeviceSubject,
  { issuedAt }: Pick<PresentedToken, "issuedAt">,
  { lifeMs, cookie, skipped }: DevicePresentation,
  now: StoreMs,
  reuseIntervalMs: number,
): DeviceVerdict {
  const isGraceOver = deviceRequired === true && now > later(createdAt, lifeMs);
  if (device === undefined) return isGraceOver ? "required" : "unproven";
  const isBound = device.state === "bound";
  if (cookie !== undefined && isSameThumbprint(cookie.thumbprint, device.key.thumbprint)) {
    // Only who had the profile has such a cookie: without a fresh one it proves nothing, and accuses nobody.
    if (Math.abs(now - cookie.issuedAtMs) > lifeMs) return "missing";
    return isBound ? "proven" : "first_use";
  }
  if (!isBound) return isGraceOver ? "required" : "unproven";
  // A request that left before the browser had its first device cookie, or a token that was returned to one.
  const inFlightMs = 2 * reuseIntervalMs;
  if (Math.abs(now - device.since) <= inFlightMs) return "unproven";
  return issuedAt <= later(device.since, inFlightMs) && !skipped ? "two_holders" : "missing";
}

/** Whether another key may be registered in place of one: the first wins, unless its response was lost on the way. */
export function isReplaceable(device: DeviceBinding, now: StoreMs, reuseIntervalMs: number): boolean {
  return device.state === "registered" && Math.abs(now - device.since) > 2 * reuseIntervalMs;
}

/** Whether a refresh token may register a key: one that is older was replaced in every browser that may have it. */
export function mayRegister(
  token: Pick<PresentedToken, "generation">,
  state: { readonly generation: number },
): boolean {
  return token.generation >= state.generation - 1;
}

export function isSameThumbprint(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, at) => byte === b[at]);
}
