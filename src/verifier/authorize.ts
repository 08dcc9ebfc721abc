import { dpopChallenge, type ProofRefusal, type ProofRefused } from "../platform/dpop/proof.ts";
import { bearerToken, dpopToken } from "../platform/net/bearer-token.ts";
import type { Accepted, Refusal, RefusalVerdict } from "./verdict.ts";
import type { Decider } from "./verifier.ts";

/** The response to an unauthorized request: 401 with a challenge (RFC 6750 section 3), or 503. */
export type Rejection = {
  readonly ok: false;
  /** The reason, for the log. `absent`: the request has no `Authorization` header. */
  readonly reason: Refusal | ProofRefusal | "absent";
  readonly status: 401 | 503;
  readonly headers: Readonly<Record<string, string>>;
  /** The body of the response, in JSON. It does not contain the reason. The challenge names a reason only if it is `stale`. */
  readonly body: string;
};

export type Authorization = Accepted | Rejection;

const unauthenticated = (challenge: string): Omit<Rejection, "reason"> => ({
  ok: false,
  status: 401,
  headers: { "content-type": "application/json", "www-authenticate": challenge },
  body: '{"error":{"code":"E001_AUTH_FAILURE","message":"authentication failed"}}',
});
const MALFORMED = { ok: false, reason: "malformed" } as const;
const ABSENT = unauthenticated("Bearer");
/** The responses to a refused token. With `stale`, the client gets another token by a refresh, and stays signed in. */
const rejections = (challenge: string) => ({
  invalid: unauthenticated(challenge),
  stale: unauthenticated(`${challenge}, error_description="stale"`),
});
const BAD = rejections('Bearer error="invalid_token"');
const BAD_BOUND = rejections(dpopChallenge("invalid_token"));
const BAD_PROOF = rejections(dpopChallenge("invalid_dpop_proof"));
const UNAVAILABLE: Omit<Rejection, "reason"> = {
  ok: false,
  status: 503,
  headers: { "content-type": "application/json", "retry-after": "1" },
  body: '{"error":{"code":"E503_UNAVAILABLE","message":"temporarily unavailable, try again"}}',
};

export type AdapterOptions = {
  /** The origin of this service for its clients, such as `https://api.example.com`. Without it, key-bound tokens (DPoP) are refused. */
  readonly origin?: string;
};

/** A request in the form that `fetch` uses. */
export type CallerRequest = {
  readonly method: string;
  /**
   * The URL that the client has called. Build it from the configuration, not from `Host`, or proofs for other services would be accepted.
   */
  readonly url: string;
  readonly headers: { get(name: string): string | null };
};

/**
 * Verifies the token of an `Authorization` header: with the scheme Bearer (RFC 6750 section 2.1) or, if a whole request is given, also
 * with the scheme DPoP and a proof (RFC 9449 section 7). It never rejects.
 *
 * It is for frameworks for which this package has no adapter.
 * @param given the header's value, null or undefined if there is none; or the request
 * @example
 * ```ts
 * import { authorize, type Verifier } from "@session-service/verifier";
 *
 * async function handle(verifier: Verifier, request: Request): Promise<Response> {
 *   const { method, headers } = request;
 *   const url = `https://api.example.com${new URL(request.url).pathname}`;
 *   const caller = await authorize(verifier, { method, url, headers });
 *   if (!caller.ok) return new Response(caller.body, { status: caller.status, headers: caller.headers });
 *   return Response.json({ hello: caller.claims.sub });
 * }
 * ```
 */
export async function authorize(
  verifier: Decider,
  given: string | null | undefined | CallerRequest,
): Promise<Authorization> {
  const request = typeof given === "object" && given !== null ? given : undefined;
  const authorization =
    request === undefined ? (given as string | null | undefined) : request.headers.get("authorization");
  if (!authorization) return { ...ABSENT, reason: "absent" };
  const boundToken = request && dpopToken(authorization);
  if (request !== undefined && boundToken !== undefined) return authorizeBound(verifier, boundToken, request);
  const token = bearerToken(authorization) ?? "";
  const verdict = await verifier.verify(token); // The verifier also counts and reports a header that has no token.
  if (token === "") return rejection(MALFORMED, BAD);
  return verdict.ok ? verdict : rejection(verdict, BAD);
}

async function authorizeBound(verifier: Decider, token: string, request: CallerRequest): Promise<Authorization> {
  const { method, url, headers } = request;
  const verdict = await verifier.verifyBound(token, { method, url, proof: headers.get("dpop") });
  if (verdict.ok) return verdict;
  return rejection(verdict, verdict.reason.startsWith("proof_") ? BAD_PROOF : BAD_BOUND);
}

function rejection({ reason }: RefusalVerdict | ProofRefused, { invalid, stale }: typeof BAD): Rejection {
  if (reason === "unavailable") return { ...UNAVAILABLE, reason };
  return { ...(reason === "stale" ? stale : invalid), reason };
}
