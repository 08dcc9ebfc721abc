/** Somebody who acts for the subject of a token, perhaps through others (RFC 8693 section 4.1). */
export type Actor = { readonly sub: string; readonly act?: Actor; readonly [name: string]: unknown };

/** The claims of a verified access token (RFC 9068 section 2.2), deeply frozen, because all requests with that token share them. */
export type Claims = {
  readonly iss: string;
  readonly sub: string;
  readonly aud: string | readonly string[];
  /** When the token expires, in seconds since the epoch. */
  readonly exp: number;
  readonly iat: number;
  readonly jti: string;
  /** The id of the session. Revocations contain this id. */
  readonly sid: string;
  readonly client_id: string;
  /** When the session was created, in ms of the service's own time. It is compared with the time of a logout of everyone. */
  readonly sct?: number;
  /** The version of the session, from its first update on. A later update may make tokens of lower versions stale. */
  readonly sv?: number;
  /** Who acts for the subject (RFC 8693 section 4.1), such as a member of support. */
  readonly act?: Actor;
  /** Present when the client proved possession of the device key that the session is bound to. */
  readonly device_bound?: true;
  /** The SHA-256 thumbprint of the key that the token is bound to (RFC 9449 section 6.1); absent for a bearer token. */
  readonly cnf?: { readonly jkt: string };
  readonly [name: string]: unknown;
};

/**
 * Why a token is rejected, as a closed list. All reasons but `unavailable` are definite: respond 401. With `unavailable`, no decision is
 * possible now: respond 503, and keep the client logged in.
 */
export const REFUSALS = [
  "malformed",
  "wrong_type",
  "wrong_algorithm",
  "unknown_key",
  "revoked_key",
  "forged",
  "wrong_issuer",
  "wrong_audience",
  "not_bearer",
  "not_device_bound",
  "not_yet_valid",
  "expired",
  "revoked",
  "stale",
  "unavailable",
] as const;
export type Refusal = (typeof REFUSALS)[number];

export type Accepted = {
  readonly ok: true;
  readonly claims: Claims;
  /** Whether the client has proven possession of the device key of its session. */
  readonly deviceBound: boolean;
};

export type RefusalVerdict = { readonly ok: false; readonly reason: Refusal };

export type Verdict = Accepted | RefusalVerdict;

/** The verdicts that reject a token, one constant for each reason. */
export const REFUSAL_VERDICTS: { readonly [reason in Refusal]: RefusalVerdict } = Object.freeze(
  Object.fromEntries(REFUSALS.map((reason) => [reason, Object.freeze({ ok: false, reason })])) as {
    [reason in Refusal]: RefusalVerdict;
  },
);

/** The same verdicts as resolved promises, so that rejecting a known token allocates nothing. */
export const REFUSAL_PROMISES = Object.fromEntries(
  REFUSALS.map((reason) => [reason, Promise.resolve(REFUSAL_VERDICTS[reason])]),
) as { readonly [reason in Refusal]: Promise<Verdict> };
