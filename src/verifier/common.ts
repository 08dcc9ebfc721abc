/** The exports that the entry points for all runtimes share. docs/tasks/verifier.md explains the functions and types. */

export { PROOF_REFUSALS, type ProofRefusal, type ProofRefused } from "../platform/dpop/proof.ts";
export {
  accessTokenHook,
  accessTokenInterceptor,
  accessTokenMiddleware,
  callerClaims,
  getCallerClaims,
  keepRawHeaders,
} from "./adapters.ts";
export { type AdapterOptions, type Authorization, authorize, type CallerRequest, type Rejection } from "./authorize.ts";
export type { ProvingRequest } from "./bound.ts";
export type { VerifierOptions } from "./options.ts";
export { VerifierClosedError } from "./ready.ts";
export type { RefusalRecords } from "./refusals/refusal-reporter.ts";
export type { RefusalRecord, Report, VerifierEvent } from "./refusals/report.ts";
export { type Accepted, type Actor, type Claims, REFUSALS, type Refusal, type Verdict } from "./verdict.ts";
export type { Decider, Verifier, VerifierState } from "./verifier.ts";
