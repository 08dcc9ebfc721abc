/** The entry for every runtime other than Node, with the same functions and types. */
export * from "../common.ts";
export { createVerifier } from "./create-verifier.ts";
