import { RecentlyUsed } from "../../platform/caches/recently-used.ts";
import { PROOF_LIFE_MS } from "../../platform/dpop/proof.ts";
import { createReplays } from "../../platform/dpop/replays.ts";
import { verifyProof } from "../../platform/dpop/verify-proof.ts";
import { deviceCookie } from "../api/public/device-cookie.ts";
import type { DeviceBindingParts } from "../api/public/device-service.ts";
import { createProofUrls, type DpopParts } from "../api/public/dpop.ts";
import type { Config } from "../config/config.ts";
import type { SessionStore } from "../session/ports.ts";
import { verifyDeviceProof } from "../tokens/device-proof.ts";
import type { KeyRing } from "../tokens/key-ring.ts";
import type { Entropy } from "../tokens/random.ts";
import { createDeviceChallenges, createDeviceCookies, createProofNonces } from "../tokens/sealed.ts";

type Settings = Pick<Config, "deviceBinding" | "cookie" | "deviceSessionTtlMs" | "reuseIntervalMs" | "allowedOrigins">;

/** A challenge is valid for this many lives of a device cookie, because a browser keeps it from one renewal to the next. */
const CHALLENGE_LIVES = 2;

/** How many device keys of sessions are cached: those of all sessions that the rate limit of refreshes counts. */
const MAX_SESSION_KEYS = 50_000;

export function createDeviceBinding(
  config: Settings,
  keys: KeyRing,
  entropy: Entropy,
  now: SessionStore["now"],
): DeviceBindingParts {
  const lifeMs = config.deviceSessionTtlMs;
  return {
    offers: config.deviceBinding,
    verifyProof: verifyDeviceProof,
    challenges: createDeviceChallenges({ keys, maxAgeMs: CHALLENGE_LIVES * lifeMs, entropy }),
    cookies: createDeviceCookies(keys),
    lifeMs,
    reuseIntervalMs: config.reuseIntervalMs,
    now,
    sessionKeys: new RecentlyUsed(MAX_SESSION_KEYS),
    cookie: deviceCookie(config.cookie, lifeMs, Date.now),
    allowedInitiators: initiatorsOf(config.allowedOrigins),
  };
}

/** Returns the hosts whose pages may make a browser renew the device cookie: those of the web, and patterns as they are. */
function initiatorsOf(origins: readonly string[]): readonly string[] {
  const hosts = origins.flatMap((origin) => /^https?:\/\/(.+?)(?::[\d*]+)?$/.exec(origin)?.[1] ?? []);
  return [...new Set(hosts)];
}

/** @param issuer the URL by which clients reach the public API */
export function createDpop(
  { dpopNonces }: Pick<Config, "dpopNonces">,
  keys: KeyRing,
  entropy: Entropy,
  issuer: string,
): DpopParts {
  return {
    verifyProof,
    replays: createReplays({ windowMs: PROOF_LIFE_MS, monotonic: () => performance.now() }),
    nonces: createProofNonces({ keys, maxAgeMs: PROOF_LIFE_MS, entropy }),
    requiresNonce: dpopNonces,
    // The URL parser has converted the host to ASCII, as it is in proofs.
    urlsOf: createProofUrls(new URL(issuer).href.replace(/\/$/, "")),
  };
}
