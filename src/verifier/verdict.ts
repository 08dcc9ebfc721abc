/** What a verified access token says (RFC 9068 §2.2), frozen all the way down: it is shared by everybody who presents it. */
export type Claims = {
  readonly iss: string;
  readonly sub: string;
  readonly aud: string | readonly string[];
  /** Seconds since the epoch, as `iat`. */
  readonly exp: number;
  readonly iat: number;
  readonly jti: string;
  /** The session: what revocation is matched on. */
  readonly sid: string;
  readonly client_id: string;
  readonly [name: string]: unknown;
};

/**
 * Why a token is refused, a closed list. All but `unavailable` are proven: answer 401. `unavailable` means
 * that it cannot be known now: answer 503, for "don't know" is not "no".
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
  "not_yet_valid",
  "expired",
  "revoked",
  "unavailable",
] as const;
export type Refusal = (typeof REFUSALS)[number];

export type Verdict = { readonly ok: true; readonly claims: Claims } | { readonly ok: false; readonly reason: Refusal };

/** One refusal for all: they are plain constants. */
export const REFUSED: { readonly [reason in Refusal]: Verdict } = Object.freeze(
  Object.fromEntries(REFUSALS.map((reason) => [reason, Object.freeze({ ok: false, reason })])) as {
    [reason in Refusal]: Verdict;
  },
);
