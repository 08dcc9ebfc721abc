import type { DeviceCookies } from "../session/device-ports.ts";
import type { MacKeys } from "./refresh-token.ts";
import { createSealed, sealedBodyLength } from "./sealed.ts";

const THUMBPRINT_LENGTH = 32;

/** How many bytes at the beginning of a device cookie are authenticated. The MAC follows them. */
export const DEVICE_COOKIE_MAC_AT = sealedBodyLength(THUMBPRINT_LENGTH);

/** Creates and checks device cookies. A device cookie contains a MAC, so checking it needs no access to the store. */
export function createDeviceCookies(keys: MacKeys): DeviceCookies {
  const sealed = createSealed(keys, {
    kind: 0xc0,
    contentLength: THUMBPRINT_LENGTH,
    macOf: (key) => key.deviceCookieMac,
  });
  return {
    issue: (sid, thumbprint, now) => sealed.seal(sid, now, thumbprint),

    read(value) {
      const opened = sealed.open(value);
      if (!opened.ok) return opened;
      const { sid, issuedAtMs, content } = opened;
      return { ok: true, sid, thumbprint: content, issuedAtMs };
    },
  };
}
