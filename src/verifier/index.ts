/**
 * What an internal service imports to verify access tokens.
 *
 * ```ts
 * const verifier = createVerifier({ adminUrl, adminToken, issuer, audience });
 * await verifier.ready;
 * const verdict = await verifier.verify(token);
 * if (verdict.ok) serve(verdict.claims.sub);
 * else if (verdict.reason === "unavailable") answer(503);
 * else answer(401);
 * ```
 */
export { authorize, type Rejection } from "./bearer.ts";
export { accessTokenInterceptor, callerClaims } from "./connect.ts";
export { accessTokenHook, accessTokenMiddleware, callerOf } from "./hooks.ts";
export type { Report, VerifierEvent } from "./report.ts";
export { type Claims, REFUSALS, type Refusal, type Verdict } from "./verdict.ts";
export { createVerifier, type Verifier, type VerifierOptions } from "./verifier.ts";
