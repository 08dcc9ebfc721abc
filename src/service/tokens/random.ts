import { hash, randomFillSync } from "node:crypto";
import type { SessionId } from "../session/model.ts";
import type { Random } from "../session/ports.ts";

/** A source of random values. Tests replace it. */
export interface Entropy {
  /** Returns `bytes` random bytes as base64url. */
  text(bytes: number): string;
  /** Returns a random number, 0 ≤ x < 1. */
  fraction(): number;
}

const POOL = 4096;

/** Returns the system's randomness, read in blocks: a system call for each nonce would cost more than all other work for the nonce. */
export function systemEntropy(): Entropy {
  const pool = Buffer.alloc(POOL);
  let used = POOL;
  const take = (bytes: number): number => {
    if (used + bytes > POOL) {
      randomFillSync(pool);
      used = 0;
    }
    used += bytes;
    return used - bytes;
  };
  return {
    text(bytes) {
      const at = take(bytes);
      return pool.toString("base64url", at, at + bytes);
    },
    fraction: () => pool.readUInt32BE(take(4)) / 2 ** 32,
  };
}

/** Returns the session id, in the partition of a subject, that always follows from a text. It shows nothing of the text. */
export function sessionIdFrom(subject: string, text: string): SessionId {
  const id = Buffer.alloc(17);
  id.write(hash("sha256", subject, "latin1"), 0, 1, "latin1");
  id.write(hash("sha256", JSON.stringify(["migration", subject, text]), "hex"), 1, 16, "hex");
  return id.toString("base64url") as SessionId;
}

/** Makes session ids (partition byte ‖ 16 random bytes) and nonces (8 random bytes). */
export function createRandom(entropy: Entropy = systemEntropy()): Random {
  const id = Buffer.alloc(17);
  return {
    sessionId(subject) {
      id.write(hash("sha256", subject, "latin1"), 0, 1, "latin1"); // the partition is the first byte of the subject's hash
      id.write(entropy.text(16), 1, 16, "base64url");
      return id.toString("base64url", 0, 17) as SessionId;
    },
    nonce: () => entropy.text(8),
  };
}
