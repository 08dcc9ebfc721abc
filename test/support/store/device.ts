/** Device keys in the form that stores receive, and the device data of requests. */
import type { DevicePresentation } from "../../../src/service/session/devices/binding.ts";
import type { DeviceKey, KeyProof } from "../../../src/service/session/devices/key.ts";
import type { SessionId } from "../../../src/service/session/model.ts";
import type { SessionStore } from "../../../src/service/session/ports.ts";
import type { TokenFields } from "../../../src/service/session/rotation/rotation.ts";
import { storeMs } from "../../../src/service/session/time.ts";
import type { Context } from "./context.ts";
import { nonce, outcomeOf, SECOND, subject } from "./sessions.ts";

/** The life of a device cookie, in ms. */
export const LIFE = 300 * SECOND;

/** Returns a key for the algorithm, with a distinct thumbprint. */
export function someKey(algorithm: DeviceKey["algorithm"] = "ES256"): DeviceKey {
  const random = Buffer.from(nonce().repeat(64), "base64url");
  const bytes = Uint8Array.from(random.subarray(0, algorithm === "ES256" ? 64 : 294));
  return { algorithm, bytes, thumbprint: Uint8Array.from(Buffer.from(nonce().repeat(4), "base64url").subarray(0, 32)) };
}

/** Returns the proof of a client's key. Each number stands for another key. */
export function someProof(which = 0): KeyProof {
  return { thumbprint: Buffer.alloc(32, `key ${which}`).toString("base64url") };
}

export const WITHOUT: DevicePresentation = { lifeMs: LIFE, cookie: undefined, skipped: false };
export const SKIPPED: DevicePresentation = { ...WITHOUT, skipped: true };
export const withCookie = ({ thumbprint }: DeviceKey, issuedAtMs: number): DevicePresentation => ({
  ...WITHOUT,
  cookie: { thumbprint, issuedAtMs: storeMs(issuedAtMs) },
});

/** Creates a session whose key has been used, so that the session is bound from now on. */
export async function boundSession({ store, backend, login }: Context, key = someKey()) {
  const { sid, first } = await login(subject());
  await store.registerKey(sid, first, key);
  const result = await store.rotate(sid, first, nonce(), withCookie(key, backend.now()));
  if (!result.ok) throw new Error(result.reason);
  return { sid, first, key, token: result.child, since: backend.now() };
}

/** Presents a token. @returns the outcome */
export async function present(
  store: SessionStore,
  sid: SessionId,
  token: TokenFields,
  device?: DevicePresentation,
): Promise<string> {
  return outcomeOf(await store.rotate(sid, token, nonce(), device));
}
