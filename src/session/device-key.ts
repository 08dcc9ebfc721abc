import type { StoreMs } from "./time.ts";

/** The public key of a device. */
export type DeviceKey = {
  readonly algorithm: "ES256" | "RS256";
  /** The key as a session stores it: x ‖ y of a P-256 point (64 bytes), or the DER SPKI of an RSA key (more than 64). */
  readonly bytes: Uint8Array;
  /** The SHA-256 thumbprint of RFC 7638, 32 bytes. */
  readonly thumbprint: Uint8Array;
};

/**
 * The device key of a session.
 *
 * It is `registered` until its first use, because the response to the registration may be lost, and then its browser does not know of the
 * key. It is `bound` from the first refresh that presents a device cookie of the key.
 */
export type DeviceBinding = {
  readonly key: DeviceKey;
  readonly state: "registered" | "bound";
  /** Since when the key is in that state. */
  readonly since: StoreMs;
};
