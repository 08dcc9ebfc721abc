/** Verifies the DPoP proof of a request (RFC 9449), before anything is decided about the request's token. */
import type { HandlerContext } from "@connectrpc/connect";
import { type ProofExpectation, type ProofResult, refuseProof } from "../../../platform/dpop/proof.ts";
import { proofUrl } from "../../../platform/dpop/proof-url.ts";
import type { Replays } from "../../../platform/dpop/replays.ts";
import type { FailureDeps } from "../../session/attempts.ts";
import type { KeyProof } from "../../session/devices/key.ts";
import type { DeviceChallenges } from "../../session/devices/ports.ts";
import type { SessionId } from "../../session/model.ts";
import type { SessionStore } from "../../session/ports.ts";
import { toWallClock } from "../../session/time.ts";
import { SHARED_ERRORS } from "../errors/connect-errors.ts";
import { badProof, nonceRequired } from "../errors/oauth-errors.ts";
import { countFailure } from "../refuse-credential.ts";
import { requestContextOf } from "../request-context.ts";

export type DpopParts = {
  readonly verifyProof: (text: string, expected: ProofExpectation) => ProofResult;
  /**
   * The proofs that this instance has accepted, each of which it accepts only once. Another instance may accept such a proof again, but the
   * response is then bound to the key, and useless to others.
   */
  readonly replays: Replays;
  /** Issues and checks the nonces of proofs. A nonce is valid only for the session for which it was issued. */
  readonly nonces: DeviceChallenges;
  readonly requiresNonce: boolean;
  /** Returns the URLs by which a client may know a request for this one. */
  readonly urlsOf: (url: string) => readonly string[];
};

export type DpopDeps = FailureDeps & {
  readonly dpop: DpopParts;
  readonly store: Pick<SessionStore, "now" | "shiftMs">;
};

/** Request header: the proof. */
export const DPOP = "dpop";
const NONCE = "dpop-nonce";
const REPLAYED = refuseProof("proof_replayed");

/**
 * Returns the key that a request proves; undefined if the request has no proof.
 *
 * @param sid the session of a token whose authenticity was verified before, because checking a signature is expensive
 * @param accessToken the token of the `Authorization` header, which the proof has to name
 * @throws `badProof` or `nonceRequired`: if there is an access token, as errors of a protected resource (RFC 9449 section 7.1). After too
 * many bad proofs from an address, the error is 429
 */
export function provenKey(
  deps: DpopDeps,
  context: HandlerContext,
  sid: SessionId,
  accessToken?: string,
): KeyProof | undefined {
  const text = context.requestHeader.get(DPOP);
  return text === null ? undefined : verify(deps, context, text, sid, accessToken);
}

function verify(
  deps: DpopDeps,
  context: HandlerContext,
  text: string,
  sid: SessionId,
  accessToken: string | undefined,
): KeyProof {
  const { dpop, store } = deps;
  const { nonces, requiresNonce } = dpop;
  const now = store.now(sid);
  const issueNonce = () => context.responseHeader.set(NONCE, nonces.issue(sid, now));
  const verified = dpop.verifyProof(text, {
    method: context.requestMethod,
    urls: dpop.urlsOf(context.url),
    nowMs: toWallClock(now, store.shiftMs({ sid })),
    accessToken,
    isFreshNonce: (nonce) => nonces.check(nonce, sid, now).ok,
    requiresNonce,
  });
  const result = verified.ok && !dpop.replays.isNew(verified.id) ? REPLAYED : verified;
  if (result.ok) {
    if (requiresNonce) issueNonce();
    return { thumbprint: result.thumbprint };
  }
  const { reason } = result;
  if (reason === "proof_stale" || reason === "proof_nonce") {
    // A client gets its first nonce with this response, so the missing nonce does not count as a failure.
    issueNonce();
    throw accessToken === undefined ? nonceRequired() : SHARED_ERRORS.nonceRequired;
  }
  const requester = requestContextOf(context);
  deps.audit({ event: "device_proof_refused", sid, operation: context.method.name, reason }, requester);
  throw countFailure(deps, requester) ?? (accessToken === undefined ? badProof() : SHARED_ERRORS.badProof);
}

/**
 * Returns the function that lists the URLs by which a client may know a request. Behind a proxy, it may have another host and a shorter
 * path. Nearly all requests have the same URL, so that of the last one is kept.
 *
 * @param baseUrl the URL below which clients reach the public API, without a slash at its end
 */
export function createProofUrls(baseUrl: string): DpopParts["urlsOf"] {
  let last: { readonly url: string; readonly urls: readonly string[] } | undefined;
  return (url) => {
    if (last?.url === url) return last.urls;
    const path = URL.parse(url)?.pathname; // `URL.parse` returns null if the host is not valid.
    const known = path === undefined ? undefined : proofUrl(baseUrl + path);
    last = { url, urls: known === undefined ? [] : [known] };
    return last.urls;
  };
}
