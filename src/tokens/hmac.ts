import { createHmac, createSecretKey } from "node:crypto";

/** HMAC-SHA-256 (RFC 2104) of one message, 32 bytes. */
export type Mac = (message: Uint8Array) => Buffer;

export function createMac(key: Uint8Array): Mac {
  const secret = createSecretKey(key);
  return (message) => createHmac("sha256", secret).update(message).digest();
}
