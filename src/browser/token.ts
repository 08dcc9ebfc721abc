/**
 * An access token and its age. Nothing is verified here: services do that. Times are the token's own (`exp` − `iat`) and
 * those since it arrived, so that a local clock may be wrong by years.
 */
import type { Realm } from "./realm.ts";

export type Claims = Readonly<Record<string, unknown>> & {
  readonly sub?: string;
  readonly sid?: string;
  readonly jti?: string;
  readonly iat: number;
  readonly exp: number;
};

export type HeldToken = ReceivedToken & {
  readonly text: string;
  readonly claims: Claims;
  readonly lifeMs: number;
  /** How long it is still valid, at the most. */
  readonly leftMs: () => number;
  readonly reserveMs: number;
};

/** A token as it arrives, from the service or from another tab. */
export type ReceivedToken = {
  readonly text: string | undefined;
  /** When it was issued, by the wall clock of this device. */
  readonly atMs: number;
  /** How long before its expiry it is refreshed, the same in all tabs. Random, so that nobody can predict it. */
  readonly reserveMs?: number;
  /** Whether it replaced a token that a service had refused. */
  readonly replacement: boolean | undefined;
};

/** A token that lives longer is renewed as if it did not: timers of 25 days fire at once. */
const MAX_LIFE_MS = 1e9;

/** The claims of a JWT, or undefined for what is none. */
export function claimsOf(text: string | undefined): Claims | undefined {
  try {
    const payload = ((text as string).split(".")[1] as string).replace(/-/g, "+").replace(/_/g, "/");
    // Deprecated and everywhere: the shortest way from bytes to UTF-8.
    const claims = JSON.parse(decodeURIComponent(escape(atob(payload)))) as Claims;
    if (claims.exp > claims.iat) return claims;
  } catch {}
  return undefined;
}

/** @returns undefined for what is no JWT */
export function holdToken(received: ReceivedToken, realm: Realm): HeldToken | undefined {
  const claims = claimsOf(received.text);
  if (!claims) return undefined;
  const lifeMs = Math.min((claims.exp - claims.iat) * 1000, MAX_LIFE_MS);
  const reserveMs = lifeMs * (0.04 + 0.08 * realm.Math.random());
  const leftMs = countdown(realm, lifeMs - agoMs(realm, received.atMs));
  return { reserveMs, ...(received as { readonly text: string } & ReceivedToken), claims, lifeMs, leftMs };
}

/**
 * What is left of `durationMs` from now on. One of the clocks may have stood still in a sleep, the other may have been set
 * back: the later one is right. A clock set forward makes the time look longer than it is, which costs one request.
 */
export function countdown(realm: Realm, durationMs: number): () => number {
  const monotonicEnd = realm.performance.now() + durationMs;
  const wallEnd = realm.Date.now() + durationMs;
  return () => Math.min(monotonicEnd - realm.performance.now(), wallEnd - realm.Date.now());
}

/** How long ago something was, by the wall clock, which the tabs share: a frozen tab gets its messages late. */
export const agoMs = (realm: Realm, atMs: number): number => Math.max(0, realm.Date.now() - atMs);
