import { hash } from "node:crypto";

const BLOCK = 64;

/** Computes the HMAC-SHA-256 of one message, as 32 characters of latin1. */
export type Mac = (message: Uint8Array) => string;

/**
 * Creates HMAC-SHA-256 (RFC 2104) with a key of at most 64 bytes, for messages of one fixed length in bytes, from two one-shot hashes over
 * blocks that are prepared once. With `createHmac`, a refresh would take 5 µs (8 %) longer, mainly to create native objects.
 */
export function createMac(key: Uint8Array, length: number): Mac {
  if (key.length > BLOCK) throw new RangeError("a MAC key has at most 64 bytes");
  const inner = Buffer.alloc(BLOCK + length, 0x36);
  const outer = Buffer.alloc(BLOCK + 32, 0x5c);
  for (const [index, byte] of key.entries()) {
    inner[index] = byte ^ 0x36;
    outer[index] = byte ^ 0x5c;
  }
  return (message) => {
    if (message.length !== length) throw new RangeError(`the message must have ${length} bytes`);
    inner.set(message, BLOCK);
    outer.write(hash("sha256", inner, "latin1"), BLOCK, "latin1");
    return hash("sha256", outer, "latin1");
  };
}
