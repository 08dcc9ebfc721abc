import { bearerToken } from "./bearer-token.ts";
import { type Claims, REFUSED, type Refusal } from "./verdict.ts";
import type { Verifier } from "./verifier.ts";

/** What to answer to a request that is not to be served: 401 with a challenge (RFC 6750 §3), or 503. */
export type Rejection = {
  readonly reason: Refusal | "absent";
  readonly status: 401 | 503;
  readonly headers: Readonly<Record<string, string>>;
  /** JSON. Says nothing of the reason, which is for the log. */
  readonly body: string;
};

const refuse = (challenge: string): Omit<Rejection, "reason"> => ({
  status: 401,
  headers: { "content-type": "application/json", "www-authenticate": challenge },
  body: '{"error":{"code":"E001_AUTH_FAILURE","message":"authentication failed"}}',
});
const ABSENT = refuse("Bearer");
const BAD = refuse('Bearer error="invalid_token"');
const UNAVAILABLE: Omit<Rejection, "reason"> = {
  status: 503,
  headers: { "content-type": "application/json", "retry-after": "1" },
  body: '{"error":{"code":"E503_UNAVAILABLE","message":"temporarily unavailable, try again"}}',
};

/** Verifies the token of an `Authorization: Bearer` header (RFC 6750 §2.1): its claims, or what to answer. */
export async function authorize(
  verifier: Verifier,
  authorization: string | null | undefined,
): Promise<{ readonly claims: Claims } | Rejection> {
  if (!authorization) return { ...ABSENT, reason: "absent" };
  const token = bearerToken(authorization);
  const verdict = token ? await verifier.verify(token) : REFUSED.malformed;
  if (verdict.ok) return verdict;
  return { ...(verdict.reason === "unavailable" ? UNAVAILABLE : BAD), reason: verdict.reason };
}
