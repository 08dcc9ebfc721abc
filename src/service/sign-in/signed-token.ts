/** Verifies tokens that a provider or a transmitter has signed for this service. */
import { setTimeout } from "node:timers/promises";
import { createRemoteJWKSet, customFetch, errors, type JWTPayload, jwtVerify } from "jose";
import { readCompactJws, readHeader, readPayload } from "../../platform/jws/compact-jws.ts";
import { boundedFetch } from "./bounded-fetch.ts";
import { isShort } from "./user.ts";

export type TokenFailure =
  | { readonly ok: false; readonly reason: "unavailable" }
  /** `code` is for the log. */
  | { readonly ok: false; readonly reason: "invalid"; readonly code: string };

type Verified = { readonly ok: true; readonly payload: JWTPayload & { readonly jti: string; readonly iat: number } };

const ALGORITHMS = [
  ...["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"],
  ...["ES256", "ES384", "ES512", "EdDSA", "Ed25519"],
];
/** How far a sender's clock may differ from that of this service, in seconds. */
export const CLOCK_SKEW_SECONDS = 60;
const TIMEOUT_MS = 5_000;
/** How long a key set is used, in ms. A key may have been withdrawn. */
const KEYS_LIFE_MS = 600_000;
/** The shortest time between two reads of a key set, also failed ones, in ms: anybody can send tokens that name unknown keys. */
const KEYS_COOLDOWN_MS = 1_000;
/** The length limit of a token, in characters. Most take about one thousand. */
export const MAX_TOKEN_LENGTH = 16_384;

export const invalid = (code: string): TokenFailure => ({ ok: false, reason: "invalid", code });

/** Returns who a token claims to be from, and for; undefined if it cannot be read. Nothing of it is verified. */
export function partiesOf(
  token: string,
): { readonly issuer: string; readonly audience: readonly string[] } | undefined {
  const claims = read(token);
  if (claims === undefined) return undefined;
  const { iss, aud } = claims;
  const audience = (Array.isArray(aud) ? aud : [aud]).filter((one) => typeof one === "string");
  return { issuer: typeof iss === "string" ? iss : "", audience };
}

/** Returns the claims of a token that has the strict form, which jose does not require; undefined if it has not. */
function read(token: string): Readonly<Record<string, unknown>> | undefined {
  const jws = readCompactJws(token, MAX_TOKEN_LENGTH);
  return jws && readHeader(jws) && readPayload(jws);
}

type Sleep = (ms: number) => Promise<unknown>;

/**
 * Returns a function that verifies tokens.
 * @param keys the URL of the key set
 * @param maxAgeSeconds how old a token may be
 * @param typ the type that its header must name; undefined for any
 * @param monotonic a clock that is never set, in ms
 * @param sleep waits for a time in ms
 */
export function createTokenVerifier(
  issuer: string,
  audience: string,
  keys: string,
  maxAgeSeconds: number,
  typ?: string,
  monotonic = () => performance.now(),
  sleep: Sleep = setTimeout,
) {
  const keySet = createKeySet(keys, monotonic, sleep);
  const options = {
    issuer,
    audience,
    algorithms: ALGORITHMS,
    requiredClaims: ["jti", "iat"],
    maxTokenAge: maxAgeSeconds,
    clockTolerance: CLOCK_SKEW_SECONDS,
    ...(typ !== undefined && { typ }),
  };
  return async (text: string): Promise<Verified | TokenFailure> => {
    if (read(text) === undefined) return invalid("malformed");
    const arrivedMs = monotonic();
    try {
      await keySet.readSince(arrivedMs - KEYS_LIFE_MS);
      const { payload } = await jwtVerify(text, keySet.find, options).catch(async (error: unknown) => {
        // The sender may have published the key since the last read. It does not repeat what is refused, so that a logout would be lost.
        if (!(error instanceof errors.JWKSNoMatchingKey)) throw error;
        await keySet.readSince(arrivedMs);
        return jwtVerify(text, keySet.find, options);
      });
      const { jti, iat } = payload;
      return isShort(jti) && iat !== undefined ? { ok: true, payload: { ...payload, jti, iat } } : invalid("jti");
    } catch (error) {
      return failureOf(error);
    }
  };
}

/**
 * Returns a key set that is read when it is needed. The cache of jose is not used: it goes by the wall clock, which may be set, and reads
 * nothing for half a minute after a read.
 */
function createKeySet(url: string, monotonic: () => number, sleep: Sleep) {
  const find = createRemoteJWKSet(new URL(url), {
    timeoutDuration: TIMEOUT_MS,
    cooldownDuration: Number.POSITIVE_INFINITY,
    cacheMaxAge: Number.POSITIVE_INFINITY,
    [customFetch]: (target, { method, headers, redirect, signal }) =>
      boundedFetch(target, { method, redirect, signal, headers: Object.fromEntries(headers), body: null }),
  });
  /** When the last read began, and the last successful one. */
  let triedAtMs = Number.NEGATIVE_INFINITY;
  let readAtMs = Number.NEGATIVE_INFINITY;
  let reading: Promise<void> | undefined;

  async function readOnce(): Promise<void> {
    const waitMs = triedAtMs + KEYS_COOLDOWN_MS - monotonic();
    if (waitMs > 0) await sleep(waitMs);
    triedAtMs = monotonic();
    await find.reload();
    readAtMs = triedAtMs;
  }

  return {
    find,
    /** Reads the keys, unless a read has begun since then. Concurrent callers share a read. Rejects if the keys cannot be read. */
    async readSince(sinceMs: number): Promise<void> {
      while (readAtMs < sinceMs) {
        reading ??= readOnce().finally(() => {
          reading = undefined;
        });
        await reading;
      }
    },
  };
}

/** The errors of jose that come from the request for the keys, not from the token. */
const OF_KEYS: readonly string[] = ["ERR_JOSE_GENERIC", "ERR_JWKS_TIMEOUT", "ERR_JWKS_INVALID"];

function failureOf(error: unknown): TokenFailure {
  const isOfToken = error instanceof errors.JOSEError && !OF_KEYS.includes(error.code);
  return isOfToken ? invalid(error.code) : { ok: false, reason: "unavailable" };
}
