import { hash } from "node:crypto";
import { RecentlyUsed } from "../caches/recently-used.ts";

/** How many tokens are remembered. Each takes about 200 bytes. */
const MAX_TOKENS = 2048;

/**
 * Remembers whether the signatures of recent tokens are valid. Verifying a signature costs twenty times as much as looking up the result.
 * Nothing else about a token is remembered: its key, time, claims and session are checked each time.
 */
export class KnownSignatures<Key extends object> {
  readonly #known = new RecentlyUsed<{ readonly key: Key; readonly isValid: boolean }>(MAX_TOKENS);

  /** Returns whether the signature is valid. A result applies only to the same `key` object, even if another key has the same id. */
  isValid(token: string, key: Key, verify: () => boolean): boolean {
    // The digest is kept instead of the token, because a token is long, and a client could choose its length.
    const digest = hash("sha256", token, "base64");
    const known = this.#known.get(digest);
    if (known?.key === key) return known.isValid;
    const isValid = verify();
    this.#known.set(digest, { key, isValid });
    return isValid;
  }
}
