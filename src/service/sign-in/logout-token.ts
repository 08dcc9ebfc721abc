/** Verifies logout tokens: a provider says that it has ended a login (OpenID Connect Back-Channel Logout 1.0 section 2.6). */
import { createRemoteJWKSet, customFetch, decodeJwt, errors, type JWTPayload, jwtVerify } from "jose";
import { boundedFetch } from "./bounded-fetch.ts";

export type LogoutToken = {
  readonly jti: string;
  /** Seconds since the epoch. */
  readonly iat: number;
  readonly sessionId?: string;
  readonly subject?: string;
};

export type LogoutFailure =
  | { readonly ok: false; readonly reason: "unavailable" }
  /** `code` is for the log. */
  | { readonly ok: false; readonly reason: "invalid"; readonly code: string };

const EVENT = "http://schemas.openid.net/event/backchannel-logout";
const ALGORITHMS = [
  "RS256",
  "RS384",
  "RS512",
  "PS256",
  "PS384",
  "PS512",
  "ES256",
  "ES384",
  "ES512",
  "EdDSA",
  "Ed25519",
];
/** How old a token may be, in seconds. A provider that repeats a request for longer makes a new token. */
export const MAX_AGE_SECONDS = 600;
/** By how much the clocks of the two may differ, in seconds. */
export const CLOCK_SKEW_SECONDS = 60;
const TIMEOUT_MS = 5_000;
const MAX_TEXT = 255;

const invalid = (code: string): LogoutFailure => ({ ok: false, reason: "invalid", code });

/** Returns who a token claims to be from, and for; undefined if it cannot be read. Nothing of it is verified. */
export function addressOf(
  token: string,
): { readonly issuer: string; readonly audience: readonly string[] } | undefined {
  try {
    const { iss = "", aud = [] } = decodeJwt(token);
    return { issuer: iss, audience: Array.isArray(aud) ? aud : [aud] };
  } catch {
    return undefined;
  }
}

/** Returns a function that verifies the logout tokens of a provider. @param keys the URL of its key set (`jwks_uri`) */
export function createLogoutVerifier(issuer: string, audience: string, keys: string) {
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
    maxTokenAge: MAX_AGE_SECONDS,
    clockTolerance: CLOCK_SKEW_SECONDS,
  };
  return async (text: string): Promise<{ readonly ok: true; readonly token: LogoutToken } | LogoutFailure> => {
    try {
      const { payload } = await jwtVerify(text, find, options);
      return logoutOf(payload);
    } catch (error) {
      return failureOf(error);
    }
  };
}

function logoutOf({ jti, iat, sid, sub, nonce, events }: JWTPayload) {
  // An ID token has a nonce or no events. It must not pass for a logout token.
  if (nonce !== undefined) return invalid("has_nonce");
  const event = typeof events === "object" && events !== null ? (events as Record<string, unknown>)[EVENT] : undefined;
  if (typeof event !== "object" || event === null) return invalid("no_event");
  if (!isShort(jti) || iat === undefined) return invalid("jti");
  if (![sid, sub].every((one) => one === undefined || isShort(one))) return invalid("sid_or_sub");
  if (sid === undefined && sub === undefined) return invalid("no_sid_or_sub");
  const token: LogoutToken = {
    ...{ jti, iat },
    ...(isShort(sid) && { sessionId: sid }),
    ...(isShort(sub) && { subject: sub }),
  };
  return { ok: true, token } as const;
}

const isShort = (value: unknown): value is string =>
  typeof value === "string" && value !== "" && value.length <= MAX_TEXT;

/** An error that does not come from the token comes from the request for the keys. */
function failureOf(error: unknown): LogoutFailure {
  const isOfKeys =
    !(error instanceof errors.JOSEError) || error.code === "ERR_JOSE_GENERIC" || error.code === "ERR_JWKS_TIMEOUT";
  return isOfKeys ? { ok: false, reason: "unavailable" } : invalid(error.code);
}
