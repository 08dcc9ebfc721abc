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

export type HeldToken = {
  readonly text: string;
  readonly claims: Claims;
  readonly lifeMs: number;
  /** Since the token was issued, at the least. */
  readonly ageMs: () => number;
  /** The age from which on it is refreshed ahead of its expiry, the same in all tabs. Random, so that nobody can predict it. */
  readonly dueMs: number;
  /** Whether it replaced a token that a service had refused. */
  readonly replacement: boolean;
};

/** A token as it arrives, from the service or from another tab. */
export type ReceivedToken = {
  readonly text: string | undefined;
  /** How old it was when it arrived. */
  readonly ageMs: number;
  readonly dueMs?: number;
  readonly replacement: boolean;
};

/** The claims of a JWT, or undefined for what is none. */
export function claimsOf(text = ""): Claims | undefined {
  try {
    const payload = (text.split(".")[1] as string).replace(/-/g, "+").replace(/_/g, "/");
    // Deprecated and everywhere: the shortest way from bytes to UTF-8.
    const claims = JSON.parse(decodeURIComponent(escape(atob(payload)))) as Claims;
    if (claims.exp > claims.iat) return claims;
  } catch {}
  return undefined;
}

/** @returns undefined for what is no JWT */
export function holdToken({ text, ageMs, dueMs, replacement }: ReceivedToken, realm: Realm): HeldToken | undefined {
  const claims = claimsOf(text);
  if (!claims) return undefined;
  const sinceMs = stopwatch(realm);
  const lifeMs = (claims.exp - claims.iat) * 1000;
  return {
    text: text as string,
    claims,
    lifeMs,
    ageMs: () => ageMs + sinceMs(),
    dueMs: dueMs ?? lifeMs * (0.88 + 0.08 * realm.Math.random()),
    replacement,
  };
}

/**
 * How long it has been since now, ms. One of the clocks may have stood still in a sleep, the other may have been set back: the
 * later one is right. A clock set forward makes the time look longer than it is, which costs one request.
 */
export function stopwatch(realm: Realm): () => number {
  const monotonicStart = realm.performance.now();
  const wallStart = realm.Date.now();
  return () => Math.max(realm.performance.now() - monotonicStart, realm.Date.now() - wallStart);
}

/** How long it is still valid, ms. */
export const leftMs = (token: HeldToken): number => token.lifeMs - token.ageMs();
