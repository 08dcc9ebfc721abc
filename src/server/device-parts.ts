/** Device binding, as the configuration has it. */
import { deviceCookie } from "../api/public/device-cookie-headers.ts";
import type { DeviceBindingParts } from "../api/public/device-service.ts";
import type { Config } from "../config/config.ts";
import type { SessionStore } from "../session/ports.ts";
import { createDeviceChallenges } from "../tokens/device-challenge.ts";
import { createDeviceCookies } from "../tokens/device-cookie-value.ts";
import { verifyDeviceProof } from "../tokens/device-proof.ts";
import type { KeyRing } from "../tokens/key-ring.ts";
import type { Entropy } from "../tokens/random.ts";

type Settings = Pick<Config, "deviceBinding" | "cookie" | "deviceSessionTtlMs" | "reuseIntervalMs" | "allowedOrigins">;

/** A browser keeps a challenge from one renewal to the next. */
const CHALLENGE_LIVES = 2;

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
    cookie: deviceCookie(config.cookie, lifeMs, Date.now),
    allowedInitiators: [...new Set(config.allowedOrigins.map((origin) => new URL(origin).hostname))],
  };
}
