/** The module that a command line, an agent or a desktop application imports. docs/tasks/clients.md explains it. */
export type { AuthInterceptor } from "../browser/authorized-calls.ts";
export { SessionEnded, SessionUnavailable } from "./errors.ts";
export { createFileStore } from "./file-store.ts";
export { generateProofKey, type ProofKey, proofKeyThumbprint, type StoredKey } from "./proof-key.ts";
export { createTokenSession, type TokenSession, type TokenSessionOptions } from "./session.ts";
export type { StoredTokens, TokenStore } from "./token-store.ts";
