/** The parts of a refresh that concern the device: reading what the request presents, and offering a challenge. This module does no I/O. */

import type { Session, SessionId } from "../model.ts";
import type { SessionStore } from "../ports.ts";
import { type StoreMs, storeMs } from "../time.ts";
import { type DevicePresentation, isReplaceable } from "./binding.ts";
import { type KeyProof, thumbprintOf } from "./key.ts";
import type { DeviceChallenges, DeviceCookies, DeviceProofExpectation, DeviceProofResult } from "./ports.ts";

/** A cache of the thumbprints of keys, by session. It may drop entries. */
interface SessionKeys {
  get(sid: SessionId): string | undefined;
  set(sid: SessionId, thumbprint: string): void;
}

export type DeviceTools = {
  /**
   * Whether clients are asked to register a device key. Even if this is off, a session that has a key can be refreshed only with it:
   * otherwise this instance would serve anybody who has copied the cookies.
   */
  readonly offers: boolean;
  readonly verifyProof: (jwt: string, expected: DeviceProofExpectation) => DeviceProofResult;
  readonly challenges: DeviceChallenges;
  readonly cookies: DeviceCookies;
  /** How long a device cookie is fresh, in ms. */
  readonly lifeMs: number;
  /** The reuse interval of refresh tokens (`R` in rotation.ts), in ms. */
  readonly reuseIntervalMs: number;
  /** Returns the store's time, at which challenges are issued. It is the same for all instances, whose own clocks may differ. */
  readonly now: SessionStore["now"];
  /** The known keys of sessions. Refreshes that prove one have a rate limit of their own, which a stolen token alone cannot use up. */
  readonly sessionKeys: SessionKeys;
};

/** What the headers of a request present to prove possession of a device key. `devicePresentation` verifies the cookies. */
export type DeviceHeaders = {
  /** The values of the device cookies, followed by those of the marks: device cookies that were never fresh (device.ts). */
  readonly cookies: readonly string[];
  /** The sessions whose device cookie the browser reports that it could not renew. */
  readonly skipped: readonly string[];
  readonly proof?: KeyProof | undefined;
};

/** The time of issue in every mark, the device cookie that is never fresh (device.ts). It is far from any real time of the store. */
export const NEVER_FRESH = storeMs(0);

export function devicePresentation(
  { cookies, lifeMs }: DeviceTools,
  headers: DeviceHeaders,
  sid: SessionId,
): DevicePresentation {
  const skipped = headers.skipped.includes(sid);
  let newest: DevicePresentation["cookie"];
  // A browser may also send an older cookie of the same name, which was set for another domain or path.
  for (const value of headers.cookies) {
    const cookie = cookies.read(value);
    if (cookie.ok && cookie.sid === sid && !(newest && newest.issuedAtMs >= cookie.issuedAtMs)) newest = cookie;
  }
  return { lifeMs, cookie: newest, skipped, ...(headers.proof && { proof: headers.proof }) };
}

/**
 * Returns the key under which the rate limit counts a refresh. Refreshes with a fresh device cookie, or with the proof of the session's
 * key, have a count of their own, which a copied token alone cannot use up. Proofs of other keys make no difference: anybody can make keys.
 */
export function refreshLimitKey(
  { now, sessionKeys }: DeviceTools,
  { cookie, lifeMs, proof }: DevicePresentation,
  sid: SessionId,
): string {
  if (proof !== undefined) return sessionKeys.get(sid) === proof.thumbprint ? `${sid}+${proof.thumbprint}` : sid;
  return cookie !== undefined && Math.abs(now(sid) - cookie.issuedAtMs) <= lifeMs ? `${sid}+` : sid;
}

export function noteSessionKey({ sessionKeys }: DeviceTools, { sid, device }: Session): void {
  if (device === undefined) return;
  const thumbprint = thumbprintOf(device);
  if (sessionKeys.get(sid) !== thumbprint) sessionKeys.set(sid, thumbprint);
}

/** Returns a challenge for the registration of a key, if the refreshed session should have a key. @param at the time of the refresh */
export function registrationOffer(
  { offers, challenges, reuseIntervalMs, now }: DeviceTools,
  { sid, device }: Pick<Session, "sid" | "device">,
  at: StoreMs,
): string | undefined {
  if (!offers || (device !== undefined && !isReplaceable(device, at, reuseIntervalMs))) return undefined;
  return challenges.issue(sid, now(sid));
}
