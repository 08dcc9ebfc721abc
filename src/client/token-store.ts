import { SessionUnavailable } from "./errors.ts";
import type { StoredKey } from "./proof-key.ts";

/** The tokens of a session in the form in which a store keeps them. Times are by the clock of the process that stored them. */
export type StoredTokens = {
  readonly refreshToken: string;
  /** The key that the session is bound to. Absent if there is none, or if it is in a keychain. */
  readonly key?: StoredKey;
  /** The access token; absent before the first refresh. */
  readonly access?: {
    readonly token: string;
    readonly obtainedAtMs: number;
    /** The time from which on a new token is fetched. */
    readonly refreshAtMs: number;
    readonly expiresAtMs: number;
  };
};

/** Keeps the tokens of one session: a file, or a keychain. Several processes may share it. */
export interface TokenStore {
  /** Returns the tokens that are stored now, or undefined if there are none. It must not return a copy that was read earlier. */
  load(): Promise<StoredTokens | undefined>;
  /**
   * Replaces the stored tokens. If the process is killed during that, either the old or the new tokens must remain.
   * @param replacing the refresh token that must still be stored, compared as late as possible. If it is not, somebody has signed in or out
   * in the meantime, and nothing may be replaced
   */
  save(tokens: StoredTokens, replacing?: string): Promise<void>;
  /**
   * Rejects if tokens as long as these cannot be stored now, for example because the disk is full. It changes nothing. Each refresh calls
   * it first: if the next refresh token could not be stored, the session would be lost.
   */
  prepare?(tokens: StoredTokens): Promise<void>;
  /**
   * Deletes the stored tokens.
   * @param ended the refresh token that must still be stored, as for `save`. A store that ignores it may delete the tokens of a new login
   */
  clear(ended?: string): Promise<void>;
}

/** Returns a store whose errors are `SessionUnavailable`, with the error of `store` as their cause. */
export function asUnavailable(store: TokenStore): Required<TokenStore> {
  const through = async <T>(what: string, use: () => Promise<T>): Promise<T> => {
    try {
      return await use();
    } catch (cause) {
      throw new SessionUnavailable(`the tokens cannot be ${what}`, undefined, { cause });
    }
  };
  return {
    load: () => through("read", () => store.load()),
    save: (tokens, replacing) => through("stored", () => store.save(tokens, replacing)),
    prepare: (tokens) => through("stored", async () => store.prepare?.(tokens)),
    clear: (ended) => through("deleted", () => store.clear(ended)),
  };
}
