/** What device binding adds to a refresh: what it presents, and what it is offered. No I/O. */
import { type DevicePresentation, isReplaceable } from "./device-binding.ts";
import type { DeviceBinding } from "./device-key.ts";
import type { DeviceChallenges, DeviceCookies, DeviceProofExpectation, DeviceProofResult } from "./device-ports.ts";
import type { Session, SessionId } from "./model.ts";
import type { SessionStore } from "./ports.ts";
import { type StoreMs, storeMs } from "./time.ts";

/** What device binding works with. */
export type DeviceTools = {
  /**
   * Whether sessions without a key are offered one: the switch. Nothing else depends on it: a key that a session has is asked for by every
   * instance, or one that is switched off would serve, and unbind, whoever has copied its cookies.
   */
  readonly offers: boolean;
  readonly verifyProof: (jwt: string, expected: DeviceProofExpectation) => DeviceProofResult;
  readonly challenges: DeviceChallenges;
  readonly cookies: DeviceCookies;
  /** How long a device cookie is fresh, ms. */
  readonly lifeMs: number;
  /** R, ms. */
  readonly reuseIntervalMs: number;
  /** Stamps challenges: the clocks of the instances that a browser meets may differ, the store's time is one. */
  readonly now: SessionStore["now"];
};

/** What a request presents of a device. */
export type PresentedDevice = {
  /** The values of its device cookies, before those of its marks (device.ts): the first that is of the session counts. */
  readonly cookies: readonly string[];
  /** The sessions for which the browser reports that it could not renew. */
  readonly skipped: readonly string[];
};

/** When marks were issued: no store's time is near it. */
export const NEVER_FRESH = storeMs(0);

/** What a refresh presents for the precondition of rotation. */
export function devicePresentation(
  { cookies, lifeMs }: DeviceTools,
  presented: PresentedDevice,
  sid: SessionId,
): DevicePresentation {
  const skipped = presented.skipped.includes(sid);
  let newest: DevicePresentation["cookie"];
  // A browser may send an older one from another scope.
  for (const value of presented.cookies) {
    const cookie = cookies.read(value);
    if (cookie.ok && cookie.sid === sid && !(newest && newest.issuedAtMs >= cookie.issuedAtMs)) newest = cookie;
  }
  return { lifeMs, cookie: newest, skipped };
}

/**
 * The key under which the rate limit counts a refresh. Those with a fresh device cookie have a count of their own, so that copied cookies
 * without one cannot use up what the holder of the device key may.
 */
export function refreshLimitKey({ now }: DeviceTools, { cookie, lifeMs }: DevicePresentation, sid: SessionId): string {
  return cookie !== undefined && Math.abs(now(sid) - cookie.issuedAtMs) <= lifeMs ? `${sid}+` : sid;
}

/** A challenge to register a key by, if a session that was refreshed is to have one. @param at when it was refreshed */
export function registrationOffer(
  { offers, challenges, reuseIntervalMs, now }: DeviceTools,
  { sid, device }: Pick<Session, "sid" | "device">,
  at: StoreMs,
): string | undefined {
  if (!offers || (device !== undefined && !isReplaceable(device, at, reuseIntervalMs))) return undefined;
  return challenges.issue(sid, now(sid));
}

export function thumbprintOf({ key }: Pick<DeviceBinding, "key">): string {
  // No Buffer here: the domain imports nothing.
  const text = btoa(String.fromCharCode(...key.thumbprint));
  return text.replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}
