/**
 * Device binding: what the key of a device adds to rotation.
 *
 * A pure function decides whether a refresh may go on to the rules of rotation.ts. The embedded store calls it, the Redis script
 * (store/redis/lua/rotate.lua) implements the same, and a differential test compares the two. docs/device-binding.md has the rules and
 * the reasons; test/session/device-search found and guards them. All times are the store's.
 */
import type { DeviceBinding } from "./device-key.ts";
import type { Transport } from "./model.ts";
import type { PresentedToken } from "./rotation.ts";
import { later, type StoreMs } from "./time.ts";

/** The parts of a refresh that concern its device. */
export type DevicePresentation = {
  /** How long a device cookie is fresh, in ms. A session that requires a binding may go without one for as long. */
  readonly lifeMs: number;
  /** From an authentic device cookie of this session, whether fresh or not. */
  readonly cookie: { readonly thumbprint: Uint8Array; readonly issuedAtMs: StoreMs } | undefined;
  /** The browser reports that it could not renew its device cookie. */
  readonly skipped: boolean;
  /** How the refresh token was presented; absent for a cookie. */
  readonly transport?: Transport;
};

/**
 * - `unproven`: the refresh goes on, because there is nothing to prove (yet).
 * - `proven`: it goes on; the device cookie is fresh and of the session's key. `first_use`: the same, and it binds the key.
 * - `missing`: it is refused, and nothing changes. `required`: the same, because the session requires a binding and has none.
 * - `wrong_transport`: it is refused, and nothing changes, because the session's token may not be presented in this way.
 * - `two_holders`: the session ends. The token was issued before a proof was needed, and its holder has never had the key.
 */
export type DeviceVerdict = ServingVerdict | "missing" | "required" | "wrong_transport" | "two_holders";

/** With these verdicts a refresh goes on to the rules of rotation. */
export type ServingVerdict = "unproven" | "proven" | "first_use";

/** The presentation of a client that knows nothing of device binding. */
export const NO_PRESENTATION: DevicePresentation = {
  lifeMs: Number.POSITIVE_INFINITY,
  cookie: undefined,
  skipped: false,
};

type DeviceSubject = {
  readonly device?: DeviceBinding | undefined;
  readonly deviceRequired?: true | undefined;
  readonly transport?: Transport | undefined;
  readonly createdAt: StoreMs;
};

/**
 * Decides about a refresh before its token is checked.
 *
 * @param reuseIntervalMs R, in ms
 */
export function judgeDevice(
  { device, deviceRequired, createdAt, transport }: DeviceSubject,
  { issuedAt }: Pick<PresentedToken, "issuedAt">,
  { lifeMs, cookie, skipped, transport: presentedBy = "cookie" }: DevicePresentation,
  now: StoreMs,
  reuseIntervalMs: number,
): DeviceVerdict {
  if (transport !== undefined && transport !== presentedBy) return "wrong_transport";
  const isGraceOver = deviceRequired === true && now > later(createdAt, lifeMs);
  if (device === undefined) return isGraceOver ? "required" : "unproven";
  const isBound = device.state === "bound";
  if (cookie !== undefined && isSameThumbprint(cookie.thumbprint, device.key.thumbprint)) {
    // Only a holder of the profile has such a cookie. If it is not fresh, it proves nothing, but it is not evidence of theft either.
    if (Math.abs(now - cookie.issuedAtMs) > lifeMs) return "missing";
    return isBound ? "proven" : "first_use";
  }
  if (!isBound) return isGraceOver ? "required" : "unproven";
  // The request left before the browser had its first device cookie, or its token was returned to such a request.
  const inFlightMs = 2 * reuseIntervalMs;
  if (Math.abs(now - device.since) <= inFlightMs) return "unproven";
  return issuedAt <= later(device.since, inFlightMs) && !skipped ? "two_holders" : "missing";
}

/** Whether another key may be registered in place of this one. The first key wins, unless the response to its registration was lost. */
export function isReplaceable(device: DeviceBinding, now: StoreMs, reuseIntervalMs: number): boolean {
  return device.state === "registered" && Math.abs(now - device.since) > 2 * reuseIntervalMs;
}

/** Whether a refresh token may register a key. An older token was replaced in every browser that may have it. */
export function mayRegister(
  token: Pick<PresentedToken, "generation">,
  state: { readonly generation: number },
): boolean {
  return token.generation >= state.generation - 1;
}

export function isSameThumbprint(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, at) => byte === b[at]);
}
