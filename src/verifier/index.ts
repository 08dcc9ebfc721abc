/** The functions and types that an internal service imports to verify access tokens. */
export * from "./common.ts";
export { createVerifier } from "./create-verifier.ts";
