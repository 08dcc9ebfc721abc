/**
 * Device binding: the rules for a session whose refreshes must prove possession of a key that its device holds.
 *
 * A pure function decides whether a refresh is allowed before the rules of rotation.ts apply. The embedded store calls the function, the
 * Redis scripts (store/redis/lua/lib/device.lua) implement the same rules, and tests compare the two. docs/why/device-binding.md has the
 * rules and the reasons; an exhaustive search (test/service/session/devices/device-search) found the rules and tests them. All times are
 * the store's.
 */

import type { Transport } from "../model.ts";
import type { RotationOutcome, TokenFields } from "../rotation/rotation.ts";
import { later, latest, type StoreMs } from "../time.ts";
import { type DeviceBinding, isProofKey, type KeyProof, thumbprintBytes, thumbprintOf } from "./key.ts";

/** What a refresh request presents to prove possession of the session's key. */
export type DevicePresentation = {
  /** How long a device cookie is fresh, in ms. A new session that requires a device key may also be without a key for this long. */
  readonly lifeMs: number;
  /** The content of an authentic device cookie of this session, whether it is fresh or not. */
  readonly cookie: { readonly thumbprint: Uint8Array; readonly issuedAtMs: StoreMs } | undefined;
  /** The browser reports that it could not renew its device cookie. */
  readonly skipped: boolean;
  /** The verified proof of possession that came with the request. */
  readonly proof?: KeyProof;
  /** How the refresh token was presented. Absent means in a cookie. */
  readonly transport?: Transport;
  /** The client that presents the refresh token at the token endpoint. Only the session's own client can bind a key to the session. */
  readonly clientId?: string;
};

/**
 * - `unproven`: the refresh is allowed without proof, because the session has no key, or has a device key that was only registered, or
 *   that was bound at most 2 R ago.
 * - `proven`: the refresh is allowed, because the device cookie is fresh and of the session's key. `first_use`: it also binds the session.
 * - `held`: the refresh is allowed with a token of any generation, because the request proves the key that the session is bound to.
 * - `first_proof`: the refresh is allowed. The session has no key. If a new refresh token is made, the proof's key is bound to the session.
 * - `device_proof_missing`: the refresh is refused, because a fresh device cookie of the session's key is missing.
 * - `device_required`: the refresh is refused, because the session requires a device key and has none.
 * - `proof_missing`, `other_key`: the refresh is refused, because the session is bound to a key that each request must prove.
 * - `wrong_transport`: the refresh is refused, because the session's token may not be presented in this way.
 * - `wrong_client`: the refresh is refused, because a client that is not the session's would bind a key. A refusal changes nothing.
 * - `two_holders`: the session ends. The token was issued before a proof was needed, and its holder has never had the key.
 */
export type DeviceVerdict =
  | ServingVerdict
  | "held"
  | "first_proof"
  | UnprovenReason
  | "device_proof_missing"
  | "device_required"
  | "wrong_transport"
  | "wrong_client"
  | "two_holders";

/** What a successful refresh has proven about the session's key. */
export type ServingVerdict = "unproven" | "proven" | "first_use";

/** Why a request is refused if its session is bound to a key that each request must prove. */
export type UnprovenReason = "proof_missing" | "other_key";

/** The presentation of a client that does not implement device binding. */
export const NO_PRESENTATION: DevicePresentation = {
  lifeMs: Number.POSITIVE_INFINITY,
  cookie: undefined,
  skipped: false,
};

type DeviceSubject = {
  readonly device?: DeviceBinding | undefined;
  readonly deviceRequired?: true | undefined;
  readonly transport?: Transport | undefined;
  readonly clientId?: string;
  readonly createdAt: StoreMs;
};

/** Decides about a refresh before its token is checked. @param reuseIntervalMs the reuse interval (`R` in rotation.ts), in ms */
export function judgeDevice(
  { device, deviceRequired, createdAt, transport, clientId }: DeviceSubject,
  { issuedAt }: Pick<TokenFields, "issuedAt">,
  { lifeMs, cookie, skipped, proof, transport: presentedBy = "cookie", clientId: client }: DevicePresentation,
  now: StoreMs,
  reuseIntervalMs: number,
): DeviceVerdict {
  if (transport !== undefined && transport !== presentedBy) return "wrong_transport";
  const isGraceOver = deviceRequired === true && now > later(createdAt, lifeMs);
  if (device === undefined) {
    if (isGraceOver) return "device_required";
    // A DPoP key is not bound to a session that is refreshed by cookie (the browser kit cannot make its proofs) or requires a device key.
    if (proof === undefined || presentedBy !== "token" || deviceRequired) return "unproven";
    return client === undefined || client === clientId ? "first_proof" : "wrong_client";
  }
  if (proof !== undefined && proof.thumbprint === thumbprintOf(device)) {
    return device.state === "bound" ? "held" : "first_use";
  }
  if (isProofKey(device)) {
    // For a short time after the binding, the request may come from a process of the same client that had no key yet.
    const isInFlight = Math.abs(now - device.since) <= 2 * reuseIntervalMs;
    return isBeforeBinding(device, createdAt, issuedAt) && !isInFlight ? "two_holders" : refusalOf(proof);
  }
  const isBound = device.state === "bound";
  if (cookie !== undefined && isSameThumbprint(cookie.thumbprint, device.key.thumbprint)) {
    // Only a browser profile that the service bound has a device cookie. A stale cookie proves nothing, but is no sign of theft.
    if (Math.abs(now - cookie.issuedAtMs) > lifeMs) return "device_proof_missing";
    return isBound ? "proven" : "first_use";
  }
  if (!isBound) return isGraceOver ? "device_required" : "unproven";
  // For a short time after the key was bound, requests without a device cookie pass: the browser may have sent them before it had one.
  const inFlightMs = 2 * reuseIntervalMs;
  if (Math.abs(now - device.since) <= inFlightMs) return "unproven";
  return issuedAt <= later(device.since, inFlightMs) && !skipped ? "two_holders" : "device_proof_missing";
}

/**
 * Decides whether a client may end its session with a refresh token. If each request must prove the session's key, ending needs the
 * proof, too. A token from before the binding is exempt, because a refresh with it would end the session as well.
 */
export function judgeEnd(
  { device, createdAt }: Pick<DeviceSubject, "device" | "createdAt">,
  { issuedAt }: Pick<TokenFields, "issuedAt">,
  proof: KeyProof | undefined,
): "allowed" | UnprovenReason {
  if (device === undefined || !isProofKey(device) || isBeforeBinding(device, createdAt, issuedAt)) return "allowed";
  return proof?.thumbprint === thumbprintOf(device) ? "allowed" : refusalOf(proof);
}

/** Returns whether a token was issued before the key was bound. In that case, other clients than the key's holder may have the token. */
function isBeforeBinding({ since }: DeviceBinding, createdAt: StoreMs, issuedAt: StoreMs): boolean {
  return since > createdAt && issuedAt < since;
}

function refusalOf(proof: KeyProof | undefined): UnprovenReason {
  return proof === undefined ? "proof_missing" : "other_key";
}

/** Returns whether another key may replace the session's key. This is allowed if the response to the registration seems to be lost. */
export function isReplaceable(device: DeviceBinding, now: StoreMs, reuseIntervalMs: number): boolean {
  return device.state === "registered" && Math.abs(now - device.since) > 2 * reuseIntervalMs;
}

/** Returns whether a refresh token is new enough to register a key. A browser that rightly had an older token has a newer one by now. */
export function mayRegister(token: Pick<TokenFields, "generation">, state: { readonly generation: number }): boolean {
  return token.generation >= state.generation - 1;
}

export function isSameThumbprint(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, at) => byte === b[at]);
}

/** Returns what a refresh has proven. A first proof binds its key only if a new token is made: others may hold the current token. */
export function provenBy(
  verdict: ServingVerdict | "held" | "first_proof",
  outcome: Exclude<RotationOutcome, "reuse">,
): ServingVerdict {
  if (verdict === "held") return "proven";
  if (verdict === "first_proof") return outcome === "repeat" ? "unproven" : "first_use";
  return verdict;
}

/** Returns the key to which a refresh has bound the session: the registered key, or the key of the request's proof. */
export function boundKey(
  { device, createdAt }: Pick<DeviceSubject, "device" | "createdAt">,
  { proof }: DevicePresentation,
  now: StoreMs,
): DeviceBinding {
  if (device !== undefined) return { ...device, state: "bound", since: now };
  if (proof === undefined) throw new TypeError("there is no key to bind");
  const key = { algorithm: "DPoP", thumbprint: thumbprintBytes(proof.thumbprint) } as const;
  return { key, state: "bound", since: latest(createdAt, now) };
}
