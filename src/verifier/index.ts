/** The functions and types that an internal service imports to verify access tokens. */

import { verifyProof } from "../platform/dpop/verify-proof.ts";
import { checkRuntime } from "../platform/runtime/check.ts";
import { createAdminClient } from "./admin/client.ts";
import type { VerifierOptions } from "./options.ts";
import { checkToken, type Key, NodeKeySet } from "./token.ts";
import { createVerifierOn, type Runtime, type Verifier } from "./verifier.ts";

export * from "./common.ts";

/** The parts that use Node: signatures are verified within one turn of the event loop, and the admin API is called over HTTP/2. */
const NODE: Runtime<Key, NodeKeySet> = {
  createKeys: (deps) => new NodeKeySet(deps),
  checkToken,
  verifyProof,
  createAdminClient,
};

/**
 * Creates a verifier of access tokens: it checks them locally, and follows the key set and the revocation feed.
 * @throws TypeError, RangeError for options that cannot work; Error before Node 22
 * @example
 * ```ts
 * import { readFileSync } from "node:fs";
 * import { createVerifier } from "@session-service/verifier";
 *
 * const verifier = createVerifier({
 *   adminUrl: "http://127.0.0.1:8081",
 *   adminToken: () => readFileSync("/run/secrets/session-admin-token", "utf8").trim(),
 *   issuer: "https://sessions.example",
 *   audience: "https://api.example",
 *   report: (event) => console.log(event),
 * });
 * await verifier.ready;
 *
 * export async function statusOf(token: string): Promise<200 | 401 | 503> {
 *   const verdict = await verifier.verify(token);
 *   if (verdict.ok) return 200; // verdict.claims.sub is the user
 *   return verdict.reason === "unavailable" ? 503 : 401;
 * }
 * ```
 */
export function createVerifier(options: VerifierOptions): Verifier {
  checkRuntime("@session-service/verifier");
  return createVerifierOn(NODE, options);
}
