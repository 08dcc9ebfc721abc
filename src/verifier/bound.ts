import { type ProofExpectation, type ProofRefused, type ProofResult, refuseProof } from "../platform/dpop/proof.ts";
import { proofUrl } from "../platform/dpop/proof-url.ts";
import type { Replays } from "../platform/dpop/replays.ts";
import type { RefusalReporter } from "./refusals/refusal-reporter.ts";
import type { Verdict } from "./verdict.ts";

/** The parts of a request that a proof is checked against (RFC 9449 section 7). */
export type ProvingRequest = {
  readonly method: string;
  /** The URL to which the client has sent the request; behind a proxy, that is the public URL. */
  readonly url: string;
  /** The value of the header `DPoP`; null or undefined if there is none. Several headers are joined with commas. */
  readonly proof: string | null | undefined;
};

export type VerifyProof = (text: string, expected: ProofExpectation) => ProofResult | Promise<ProofResult>;

const UNAVAILABLE = { ok: false, reason: "unavailable" } as const satisfies Verdict;

type Deps = {
  /** Returns the verdict on a token, on the assumption that possession of the token's key was proven. */
  readonly verify: (token: string) => Promise<Verdict>;
  readonly verifyProof: VerifyProof;
  readonly replays: Replays;
  readonly clock: () => number;
  readonly refusals: Pick<RefusalReporter, "note">;
};

/** Decides whether to accept a token with the proof of its request. It never rejects. */
export async function verifyBound(deps: Deps, token: string, request: ProvingRequest): Promise<Verdict | ProofRefused> {
  const verdict = await deps.verify(token);
  if (!verdict.ok) return verdict;
  let fault: ProofRefused | typeof UNAVAILABLE | undefined;
  try {
    fault = await findFault(deps, token, request, verdict.claims.cnf);
  } catch {
    fault = UNAVAILABLE; // The runtime has failed to check the proof.
  }
  if (fault === undefined) return verdict;
  deps.refusals.note(fault.reason, { token, request });
  return fault;
}

async function findFault(
  { verifyProof, replays, clock }: Deps,
  accessToken: string,
  { method, url, proof }: ProvingRequest,
  cnf: unknown,
): Promise<ProofRefused | undefined> {
  if (!proof) return refuseProof("proof_absent");
  const known = proofUrl(url);
  const urls = known === undefined ? [] : [known];
  const result = await verifyProof(proof, { method, urls, nowMs: clock(), accessToken });
  if (!result.ok) return result;
  const { jkt } = { jkt: undefined, ...(cnf as object | undefined) };
  if (jkt !== result.thumbprint) return refuseProof("proof_other_key");
  return replays.isNew(result.id) ? undefined : refuseProof("proof_replayed");
}
