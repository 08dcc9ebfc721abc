/** Verifies tokens that a provider or a transmitter has signed for this service. */
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
/** The length limit of a token, in characters. Most take about one thousand. */
export const MAX_TOKEN_LENGTH = 16_384;

export const invalid = (code: string): TokenFailure => ({ ok: false, reason: "invalid", code });

/** Returns who a token claims to be from, and for; undefined if it cannot be read. Nothing of it is verified. */
export function addressOf(
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

/**
 * Returns a function that verifies tokens.
 * @param keys the URL of the key set
 * @param maxAgeSeconds how old a token may be
 * @param typ the type that its header must name; undefined for any
 */
export function createTokenVerifier(
  issuer: string,
  audience: string,
  keys: string,
  maxAgeSeconds: number,
  typ?: string,
) {
  const find = createRemoteJWKSet(new URL(keys), {
    timeoutDuration: TIMEOUT_MS,
    [customFetch]: (url, { method, headers, redirect, signal }) =>
      boundedFetch(url, { method, redirect, signal, headers: Object.fromEntries(headers), body: null }),
  });
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
    try {
      const { payload } = await jwtVerify(text, find, options);
      const { jti, iat } = payload;
      return isShort(jti) && iat !== undefined ? { ok: true, payload: { ...payload, jti, iat } } : invalid("jti");
    } catch (error) {
      return failureOf(error);
    }
  };
}

/** An error that does not come from the token comes from the request for the keys. */
function failureOf(error: unknown): TokenFailure {
  const isOfKeys =
    !(error instanceof errors.JOSEError) || error.code === "ERR_JOSE_GENERIC" || error.code === "ERR_JWKS_TIMEOUT";
  return isOfKeys ? { ok: false, reason: "unavailable" } : invalid(error.code);
}
