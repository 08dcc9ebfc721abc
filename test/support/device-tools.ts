/** A simplified device binding for tests of the domain. It offers keys, but accepts no proof and no cookie. */
import type { DeviceTools } from "../../src/service/session/devices/presented.ts";

export function deviceTools(now: DeviceTools["now"], more: Partial<DeviceTools> = {}): DeviceTools {
  return {
    offers: true,
    verifyProof: () => ({ ok: false, reason: "malformed" }),
    challenges: { issue: () => "", check: () => ({ ok: true }) },
    cookies: { issue: () => "", read: () => ({ ok: false, reason: "malformed" }) },
    lifeMs: 300_000,
    reuseIntervalMs: 10_000,
    now,
    sessionKeys: new Map(),
    ...more,
  };
}
