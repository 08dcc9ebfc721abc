import type { StoreMs } from "./time.ts";

/** The public key of a device. */
export type DeviceKey = {
  readonly algorithm: "ES256" | "RS256";
  /** As a session keeps it: x ‖ y of a P-256 point (64 bytes), or the DER SPKI of an RSA key (more than 64). */
  readonly bytes: Uint8Array;
  /** The SHA-256 thumbprint of RFC 7638, 32 bytes. */
  readonly thumbprint: Uint8Array;
};

/**
 * The device key of a session.
 *
 * It is `registered` until its first use: the response to the registration may be lost, and with it all that its browser knows of the
 * key. It is `bound` from the first refresh on that presents a device cookie of it.
 */
export type DeviceBinding = {
  readonly key: DeviceKey;
  readonly state: "registered" | "bound";
  /** Since when it is in that state. */
  readonly since: StoreMs;
};
