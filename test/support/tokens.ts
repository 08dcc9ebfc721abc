import type { Session, SessionId } from "../../src/service/session/model.ts";
import type { SessionStore } from "../../src/service/session/ports.ts";
import { later, storeMs } from "../../src/service/session/time.ts";
import { generateMacKey, generateRing } from "../../src/service/tokens/generate-key.ts";
import type { SigningAlg } from "../../src/service/tokens/jws.ts";
import { readyKeys } from "../../src/service/tokens/keys.ts";
import type { Entropy } from "../../src/service/tokens/random.ts";

export const ISSUER = "https://auth.example";
export const NOW = storeMs(Date.UTC(2026, 0, 2, 3, 4, 5, 678));
export const SID = "AAECAwQFBgcICQoLDA0ODxA" as SessionId;

/** Returns a source of "random" values that counts up, so that tokens are the same in every run. */
export function countingEntropy(fraction = 0): Entropy {
  let calls = 0;
  return {
    text(bytes) {
      calls += 1;
      return Buffer.alloc(bytes, calls).toString("base64url");
    },
    fraction: () => fraction,
  };
}

/** Returns the keys of an instance, and a further MAC key that is not among them. */
export function someKeys(alg: SigningAlg = "ES256") {
  const ring = generateRing(alg, NOW);
  return {
    ring,
    current: readyKeys(ring),
    foreign: readyKeys({ ...ring, mac: [{ ...generateMacKey(NOW), state: "signing" }] }),
  };
}

export function someSession(changes: Partial<Session> = {}): Session {
  return {
    sid: SID,
    subject: "user-1",
    clientId: "app",
    audience: "https://api.example",
    claims: "{}",
    client: { userAgent: "", ipAddress: "", displayName: "" },
    idleTimeoutMs: 14 * 86_400_000,
    absoluteLifetimeMs: 90 * 86_400_000,
    createdAt: NOW,
    lastRefreshedAt: NOW,
    idleExpiresAt: later(NOW, 14 * 86_400_000),
    absoluteExpiresAt: later(NOW, 90 * 86_400_000),
    ...changes,
  };
}

/** Returns the clock of a store, whose time a test sets. The wall clock is ahead of that time by `shiftMs`. */
export function timeAt(now: () => number, shiftMs = 0): Pick<SessionStore, "now" | "shiftMs"> {
  return { now: () => storeMs(now()), shiftMs: () => shiftMs };
}
