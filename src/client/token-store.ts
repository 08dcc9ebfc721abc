import type { StoredKey } from "./proof-key.ts";

/** The tokens of a session as a store keeps them. Times are by the clock of the process that stored them. */
export type StoredTokens = {
  readonly refreshToken: string;
  /** The key that the session is bound to; absent without one, and where a keychain has it. */
  readonly key?: StoredKey;
  /** Absent before the first refresh. */
  readonly access?: {
    readonly token: string;
    readonly obtainedAtMs: number;
    /** From then on another token is fetched. */
    readonly refreshAtMs: number;
    readonly expiresAtMs: number;
  };
};

/** Keeps the tokens of one session: a file, or a keychain. Several processes may share it. */
export interface TokenStore {
  /** Returns what is stored now; undefined if nothing is. It must not return a copy that was read earlier. */
  load(): Promise<StoredTokens | undefined>;
  /**
   * Replaces what is stored. A process that is killed meanwhile must leave what was stored before, or the new tokens.
   *
   * @param replacing the refresh token that has to be stored still: if it is not, somebody has signed in or out meanwhile, and nothing is
   * to be replaced. Compare it as late as possible
   */
  save(tokens: StoredTokens, replacing?: string): Promise<void>;
  /** Removes what is stored. */
  clear(): Promise<void>;
}
