import { bearerToken } from "./bearer-token.ts";
import { type Accepted, REFUSED, type Refusal } from "./verdict.ts";
import type { Verifier } from "./verifier.ts";

/** The response to a request that is not authorized: 401 with a challenge (RFC 6750 section 3), or 503. */
export type Rejection = {
  readonly ok: false;
  /** The reason, for the log. `absent`: the request has no `Authorization` header. */
  readonly reason: Refusal | "absent";
  readonly status: 401 | 503;
  readonly headers: Readonly<Record<string, string>>;
  /** The body in JSON, without the reason. */
  readonly body: string;
};

export type Authorization = Accepted | Rejection;

const unauthenticated = (challenge: string): Omit<Rejection, "reason"> => ({
  ok: false,
  status: 401,
  headers: { "content-type": "application/json", "www-authenticate": challenge },
  body: '{"error":{"code":"E001_AUTH_FAILURE","message":"authentication failed"}}',
});
const ABSENT = unauthenticated("Bearer");
const BAD = unauthenticated('Bearer error="invalid_token"');
const UNAVAILABLE: Omit<Rejection, "reason"> = {
  ok: false,
  status: 503,
  headers: { "content-type": "application/json", "retry-after": "1" },
  body: '{"error":{"code":"E503_UNAVAILABLE","message":"temporarily unavailable, try again"}}',
};

/**
 * Verifies the token of an `Authorization: Bearer` header (RFC 6750 section 2.1). Never rejects.
 *
 * For frameworks without an adapter here.
 *
 * @param authorization the header's value; null or undefined if there is none
 * @example
 * ```ts
 * import { authorize, type Verifier } from "@session-service/verifier";
 *
 * async function handle(verifier: Verifier, request: Request): Promise<Response> {
 *   const caller = await authorize(verifier, request.headers.get("authorization"));
 *   if (!caller.ok) return new Response(caller.body, { status: caller.status, headers: caller.headers });
 *   return Response.json({ hello: caller.claims.sub });
 * }
 * ```
 */
export async function authorize(verifier: Verifier, authorization: string | null | undefined): Promise<Authorization> {
  if (!authorization) return { ...ABSENT, reason: "absent" };
  const token = bearerToken(authorization);
  const verdict = token ? await verifier.verify(token) : REFUSED.malformed;
  if (verdict.ok) return verdict;
  return { ...(verdict.reason === "unavailable" ? UNAVAILABLE : BAD), reason: verdict.reason };
}
