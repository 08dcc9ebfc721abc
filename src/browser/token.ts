/**
 * An access token and its age. The kit verifies nothing; services do. It uses only the token's lifetime (`exp` − `iat`) and the time since
 * its arrival, so a local clock may be wrong by years.
 */
import type { Realm } from "./realm.ts";

export type Claims = Readonly<Record<string, unknown>> & {
  readonly sub?: string;
  readonly sid?: string;
  readonly jti?: string;
  /** The version of the session: how often its claims or audiences have changed. */
  readonly sv?: number;
  readonly iat: number;
  readonly exp: number;
};

export type HeldToken = ReceivedToken & {
  readonly claims: Claims;
  readonly lifeMs: number;
  /** Returns for how long the token is still valid at most, in ms. */
  readonly leftMs: () => number;
  readonly reserveMs: number;
};

/** A token as it arrives, from the service or from another tab. */
export type ReceivedToken = {
  readonly text?: string | undefined;
  /** The claims with which a server rendered the page, if it did not send the text of the token. */
  readonly claims?: Claims;
  /** When the token was issued, by the wall clock of this device. */
  readonly atMs: number;
  /** How long before its expiry the token is refreshed, in ms: a random time that nobody can predict, the same in all tabs. */
  readonly reserveMs?: number;
  /** The version (`sv`) of a token that a service had refused, if this token has replaced it. */
  readonly replacement?: number | undefined;
};

/** The longest life that the kit counts on, in ms. Timers of 25 days or more would fire at once. */
const MAX_LIFE_MS = 1e9;

/** Returns the claims of a JWT; undefined if the text is no JWT. */
export function claimsOf(text: string | undefined): Claims | undefined {
  try {
    const payload = ((text as string).split(".")[1] as string).replace(/-/g, "+").replace(/_/g, "/");
    // `escape` is deprecated, but every browser has it, and nothing shorter reads bytes as UTF-8.
    const claims = JSON.parse(decodeURIComponent(escape(atob(payload)))) as Claims;
    if (claims.exp > claims.iat) return claims;
  } catch {}
  return undefined;
}

/** @returns undefined if the text is no JWT */
export function holdToken(received: ReceivedToken, realm: Realm): HeldToken | undefined {
  const claims = claimsOf(received.text) ?? received.claims;
  if (!claims) return undefined;
  const lifeMs = Math.min((claims.exp - claims.iat) * 1000, MAX_LIFE_MS);
  const reserveMs = lifeMs * (0.04 + 0.08 * realm.Math.random());
  const leftMs = countdown(realm, lifeMs - agoMs(realm, received.atMs));
  return { reserveMs, ...received, claims, lifeMs, leftMs };
}

/**
 * Returns a function that returns how much of `durationMs` is left, by the clock that shows the longer elapsed time: one clock may have
 * stopped while the device slept, and the other may have been set back. A clock that was set forward costs one request.
 */
export function countdown(realm: Realm, durationMs: number): () => number {
  const monotonicEnd = realm.performance.now() + durationMs;
  const wallEnd = realm.Date.now() + durationMs;
  return () => Math.min(monotonicEnd - realm.performance.now(), wallEnd - realm.Date.now());
}

/**
 * Returns how long ago the time `atMs` of the wall clock is. Messages between tabs contain such times, because a frozen tab receives a
 * message late, and all tabs have the same wall clock.
 */
export const agoMs = (realm: Realm, atMs: number): number => Math.max(0, realm.Date.now() - atMs);
