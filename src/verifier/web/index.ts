/** The entry point of the package for every runtime other than Node. It has the same functions and types as that for Node. */
export * from "../common.ts";
export { createVerifier } from "./create-verifier.ts";
