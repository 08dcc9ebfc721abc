/** Encrypts secrets that the service must be able to read again, such as the secrets of receivers. */
import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import type { MacKeys } from "./refresh-token.ts";

// The layout: version ‖ key id ‖ nonce ‖ tag ‖ AES-256-GCM of the text. The version and the key id are authenticated as well.
const VERSION = 1;
const HEAD = 5;
const NONCE_LENGTH = 12;
const TAG_LENGTH = 16;
const TEXT_AT = HEAD + NONCE_LENGTH + TAG_LENGTH;

interface SecretSeal {
  /** Encrypts a text with the current MAC key of the ring. */
  seal(text: string): string;
  /** Decrypts a text. @throws Error if it was not encrypted with a key of the ring */
  open(sealed: string): string;
  /** Returns whether a text was encrypted with another key than the current one, which a later ring may not contain. */
  isOutdated(sealed: string): boolean;
}

/** @param purpose a text that was sealed for one purpose cannot be opened for another */
export function createSecretSeal(keys: MacKeys, purpose = ""): SecretSeal {
  const authenticated = (head: Buffer) => Buffer.concat([head, Buffer.from(purpose)]);
  return {
    seal(text) {
      const { id, sealingKey } = keys.current.mac;
      const head = Buffer.alloc(HEAD, VERSION);
      head.writeUInt32BE(id, 1);
      const nonce = randomBytes(NONCE_LENGTH);
      const cipher = createCipheriv("aes-256-gcm", sealingKey, nonce).setAAD(authenticated(head));
      const encrypted = Buffer.concat([cipher.update(text, "utf8"), cipher.final()]);
      return Buffer.concat([head, nonce, cipher.getAuthTag(), encrypted]).toString("base64url");
    },
    open(sealed) {
      const bytes = Buffer.from(sealed, "base64url");
      if (bytes.length < TEXT_AT || bytes[0] !== VERSION) throw new Error("a sealed secret is malformed");
      const key = keys.current.macs.get(bytes.readUInt32BE(1));
      if (key === undefined) throw new Error("a secret is sealed under a key that the ring does not have");
      const nonce = bytes.subarray(HEAD, HEAD + NONCE_LENGTH);
      const decipher = createDecipheriv("aes-256-gcm", key.sealingKey, nonce, { authTagLength: TAG_LENGTH });
      decipher.setAAD(authenticated(bytes.subarray(0, HEAD))).setAuthTag(bytes.subarray(HEAD + NONCE_LENGTH, TEXT_AT));
      return Buffer.concat([decipher.update(bytes.subarray(TEXT_AT)), decipher.final()]).toString("utf8");
    },
    isOutdated(sealed) {
      const bytes = Buffer.from(sealed, "base64url");
      return bytes.length < TEXT_AT || bytes.readUInt32BE(1) !== keys.current.mac.id;
    },
  };
}
