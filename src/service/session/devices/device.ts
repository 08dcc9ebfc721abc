/** Registers, renews and removes the device key of a session. */
import { type DeviceRefusalReason, namesOf, type Requester } from "../audit.ts";
import type { RefusalReason, Refused } from "../errors.ts";
import type { Session, SessionId } from "../model.ts";
import type { AuditedStore } from "../ports.ts";
import { type AuthenticTokens, newestFirst, type PresentedTokens } from "../rotation/presented-cookie.ts";
import type { StoreMs } from "../time.ts";
import { isProofKey, thumbprintOf } from "./key.ts";
import type { DeviceProofExpectation, DeviceProofResult } from "./ports.ts";
import { type DeviceTools, NEVER_FRESH } from "./presented.ts";

/**
 * The device cookie and the mark to set, and a challenge for the next renewal. The mark is a second device cookie, which was never fresh.
 * The browser deletes the device cookie when it expires, but keeps the mark. A request with the mark alone comes from the bound browser
 * profile, or from a copy of it: it is refused, but the session does not end as stolen.
 */
export type DeviceGranted = {
  readonly ok: true;
  readonly session: Session;
  readonly cookie: string;
  readonly mark: string;
  readonly challenge: string;
};

/** The proof or its key is absent or refused. The next attempt needs a proof that contains this challenge. */
export type ProofRequired = {
  readonly ok: false;
  readonly reason: "proof_required";
  readonly sid: SessionId;
  readonly challenge: string;
};

/** A device cookie cannot be renewed: the session has ended or is not bound, or the request does not belong to it. */
type NothingToRenew = { readonly ok: false; readonly reason: "nothing_to_renew" };
const NOTHING_TO_RENEW: NothingToRenew = { ok: false, reason: "nothing_to_renew" };

/**
 * The session cannot be determined now. Either a sibling domain has planted a second token, or another instance signed the token with a
 * key that this instance has not loaded yet. After a definite refusal the browser would delete its key, and so lose the session.
 */
type Undecided = { readonly ok: false; readonly reason: "undecided" };
const UNDECIDED: Undecided = { ok: false, reason: "undecided" };

function withoutToken(reason: RefusalReason): NothingToRenew | Undecided {
  return reason === "ambiguous" || reason === "unknown_key" ? UNDECIDED : NOTHING_TO_RENEW;
}

/** Registers the key of a device for the session of a refresh token, which is not rotated. @throws StoreUnavailable */
export async function registerDevice(
  deps: AuditedStore<"registerKey" | "find">,
  tools: DeviceTools,
  tokens: PresentedTokens,
  jwt: string | undefined,
  requester: Requester,
): Promise<DeviceGranted | ProofRequired | Refused> {
  const ordered = await newestFirst(deps.store, tokens);
  if (!ordered.ok) return ordered;
  const [token] = ordered.tokens;
  const { sid } = token;
  const audit = (reason: DeviceRefusalReason) =>
    deps.audit({ event: "device_proof_refused", sid, operation: "RegisterDevice", reason }, requester);
  const proof = checkProof(tools, jwt, { kind: "registration" }, sid, audit);
  if (!proof.ok) return proof;
  const { key } = proof;
  const thumbprint = thumbprintOf({ key });
  const result = await deps.store.registerKey(sid, token, key);
  if (!result.ok) {
    const { reason } = result;
    if (reason === "unknown" || reason === "revoked") {
      return { ok: false, reason: reason === "unknown" ? "unknown_session" : reason, sid };
    }
    deps.audit({ event: "device_key_refused", sid, thumbprint, reason }, requester);
    return proofRequired(tools, sid);
  }
  const { session, now } = result;
  deps.audit({ event: "device_registered", ...namesOf(session), algorithm: key.algorithm, thumbprint }, requester);
  return grant(tools, session, key.thumbprint, now);
}

/**
 * Renews the device cookie of a refresh token's session.
 *
 * @param presented the request's refresh tokens, or why they were refused: a browser without a valid token has nothing to renew
 * @param sessionId the session that the browser names
 * @throws StoreUnavailable
 */
export async function renewDevice(
  deps: AuditedStore<"find">,
  tools: DeviceTools,
  presented: AuthenticTokens | Refused,
  sessionId: string | undefined,
  jwt: string | undefined,
  requester: Requester,
): Promise<DeviceGranted | ProofRequired | NothingToRenew | Undecided> {
  const authenticated = presented.ok ? await newestFirst(deps.store, presented.tokens) : presented;
  if (!authenticated.ok) {
    deps.audit({ event: "authn_failed", operation: "RenewDevice", reason: authenticated.reason }, requester);
    return withoutToken(authenticated.reason);
  }
  const named = authenticated.tokens.find((token) => sessionId === undefined || token.sid === sessionId);
  if (named === undefined) return NOTHING_TO_RENEW;
  const { sid } = named;
  const found = await deps.store.find(sid);
  // The session is looked up even without a proof, so that one request shows whether there is anything to renew.
  if (!found.ok || found.session.device === undefined || isProofKey(found.session.device)) return NOTHING_TO_RENEW;
  const { session, now } = found;
  const { key } = found.session.device;
  const audit = (reason: DeviceRefusalReason) =>
    deps.audit({ event: "device_proof_refused", sid, operation: "RenewDevice", reason }, requester);
  const proof = checkProof(tools, jwt, { kind: "renewal", key }, sid, audit);
  if (!proof.ok) return proof;
  deps.audit({ event: "device_renewed", ...namesOf(session) }, requester);
  return grant(tools, session, key.thumbprint, now);
}

/** Removes the device key of a session. Returns undefined if there is no live session. */
export async function unbindDevice(
  deps: AuditedStore<"unbind">,
  sid: SessionId,
  requester: Requester,
): Promise<Session | undefined> {
  const result = await deps.store.unbind(sid);
  if (!result.ok) return undefined;
  const { session, hadKey } = result;
  if (hadKey) deps.audit({ event: "device_unbound", ...namesOf(session) }, requester);
  return session;
}

/** Verifies a proof and its challenge. @param audit is called with the reason if there is a proof and it is refused */
function checkProof(
  tools: DeviceTools,
  jwt: string | undefined,
  expected: DeviceProofExpectation,
  sid: SessionId,
  audit: (reason: DeviceRefusalReason) => void,
): Extract<DeviceProofResult, { readonly ok: true }> | ProofRequired {
  if (jwt === undefined) return proofRequired(tools, sid);
  const proof = tools.verifyProof(jwt, expected);
  if (!proof.ok) {
    audit(proof.reason);
    return proofRequired(tools, sid);
  }
  const challenge = tools.challenges.check(proof.challenge, sid, tools.now(sid));
  if (challenge.ok) return proof;
  audit(`challenge_${challenge.reason}`);
  return proofRequired(tools, sid);
}

function proofRequired({ challenges, now }: DeviceTools, sid: SessionId): ProofRequired {
  return { ok: false, reason: "proof_required", sid, challenge: challenges.issue(sid, now(sid)) };
}

/** Returns a new device cookie, a new mark (see DeviceGranted) and the next challenge. */
function grant(
  { cookies, challenges, now }: DeviceTools,
  session: Session,
  thumbprint: Uint8Array,
  at: StoreMs,
): DeviceGranted {
  const { sid } = session;
  return {
    ok: true,
    session,
    cookie: cookies.issue(sid, thumbprint, at),
    mark: cookies.issue(sid, thumbprint, NEVER_FRESH),
    challenge: challenges.issue(sid, now(sid)),
  };
}
