/** The entry point of the package for every runtime other than Node. It has the same functions and types as that for Node. */
import { KeySet } from "../key-set.ts";
import type { VerifierOptions } from "../options.ts";
import { createVerifierOn, type Runtime, type Verifier } from "../verifier.ts";
import { createAdminClient } from "./admin-client.ts";
import { checkToken, importKey, type Key } from "./token.ts";
import { verifyProof } from "./verify-proof.ts";

export * from "../common.ts";

/** The parts of the verifier that work in every runtime with WebCrypto and fetch. */
const WEB: Runtime<Key, KeySet<Key>> = {
  createKeys: (deps) => new KeySet(deps, importKey),
  checkToken,
  verifyProof,
  createAdminClient,
};

/**
 * Creates a verifier for Deno, Bun, Workers and browsers, which works like the one for Node. An isolate whose connections end with each
 * request needs `pollIntervalMs`.
 * @throws TypeError, RangeError for options that cannot work
 */
export function createVerifier(options: VerifierOptions): Verifier {
  return createVerifierOn(WEB, options);
}
