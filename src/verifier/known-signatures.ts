import { hash } from "node:crypto";
import { RecentlyUsed } from "./recently-used.ts";

/** About 200 bytes each. */
const MAX_TOKENS = 2048;

/**
 * Remembers of recent tokens whether their signatures are valid, which costs twenty times as much to find out: a refused token may be
 * presented again and again. Nothing else about a token is remembered: its key, its time, its claims and its session are judged anew.
 */
export class KnownSignatures<Key extends object> {
  readonly #known = new RecentlyUsed<{ readonly key: Key; readonly isValid: boolean }>(MAX_TOKENS);

  /**
   * @param key what verifies: another one, even under the same id, decides anew
   * @param verify verifies the signature of the token by the key
   */
  isValid(token: string, key: Key, verify: () => boolean): boolean {
    // Tokens are long, and anybody may present them.
    const digest = hash("sha256", token, "base64");
    const known = this.#known.get(digest);
    if (known?.key === key) return known.isValid;
    const isValid = verify();
    this.#known.set(digest, { key, isValid });
    return isValid;
  }
}
