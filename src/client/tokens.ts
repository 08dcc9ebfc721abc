/** Manages the access token of a session whose tokens other processes may replace at any time. */
import type { Endpoints, Granted } from "./endpoints.ts";
import { SessionEnded, SessionUnavailable } from "./errors.ts";
import type { ProofKey } from "./proof-key.ts";
import type { StoredTokens, TokenStore } from "./token-store.ts";

type Deps = {
  readonly store: Pick<TokenStore, "load" | "save" | "prepare">;
  readonly endpoints: Pick<Endpoints, "refresh">;
  /** Returns the key of a session; undefined if it has none. */
  readonly keyOf: (stored: StoredTokens) => Promise<ProofKey | undefined>;
  readonly now: () => number;
};

/** How long before its expiry a token is replaced, in ms. For short-lived tokens it is a tenth of their life. */
const MAX_MARGIN_MS = 30_000;
const MARGIN_SHARE = 0.1;
/** How many stored refresh tokens a call presents, one after the other, if other processes replace them meanwhile. */
const MAX_ATTEMPTS = 5;

/** Loads the stored tokens. @throws SessionEnded if there are none */
export async function loadTokens({ store }: Pick<Deps, "store">): Promise<StoredTokens> {
  const stored = await store.load();
  if (stored === undefined) throw new SessionEnded("there is no session");
  return stored;
}

/** Returns the stored access token if it is valid for a while and is not the refused one. */
export function freshToken(stored: StoredTokens, timeMs: number, refused?: string): string | undefined {
  return tokenUntil("refreshAtMs", stored, timeMs, refused);
}

function tokenUntil(
  end: "refreshAtMs" | "expiresAtMs",
  { access }: StoredTokens,
  timeMs: number,
  refused: string | undefined,
): string | undefined {
  if (access === undefined || access.token === refused) return undefined;
  // A token that was obtained in the future is not used: the clock was set back, so the age of the token is not known.
  return access.obtainedAtMs <= timeMs && timeMs < access[end] ? access.token : undefined;
}

/**
 * Returns another access token than the refused one: one that another process has stored, or a new one. If the service cannot be reached,
 * the stored token is returned while it is valid.
 * @throws SessionEnded, SessionUnavailable
 */
export async function refreshTokens(deps: Deps, refused: string | undefined): Promise<string> {
  const { store, now } = deps;
  const stored = await loadTokens(deps);
  const fresh = freshToken(stored, now(), refused);
  if (fresh !== undefined) return fresh;
  try {
    await store.prepare?.(stored);
    return await presentTokens(deps, refused);
  } catch (error) {
    if (!(error instanceof SessionUnavailable)) throw error;
    // If the store has failed, the tokens from before are used.
    const latest = await loadTokens(deps).catch((again: unknown) => {
      if (again instanceof SessionUnavailable) return stored;
      throw again;
    });
    const token = tokenUntil("expiresAtMs", latest, now(), refused);
    if (token === undefined) throw error;
    return token;
  }
}

/** Presents the stored refresh token, and those that other processes store in the meantime. */
async function presentTokens(deps: Deps, refused: string | undefined): Promise<string> {
  const { endpoints, now, keyOf } = deps;
  let presented: string | undefined;
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    // The stored tokens are read again: another process may have replaced them since this call got the refused token.
    const stored = await loadTokens(deps);
    const fresh = freshToken(stored, now(), refused);
    if (fresh !== undefined) return fresh;
    if (stored.refreshToken === presented) throw new SessionEnded("the session is over");
    presented = stored.refreshToken;
    const granted = await endpoints.refresh(presented, await keyOf(stored));
    if (granted !== undefined) return keep(deps, presented, granted);
  }
  throw new SessionUnavailable("other processes keep replacing the tokens");
}

/**
 * Deletes tokens that another process got by a refresh while the session ended, but not those of a login. If the service does not respond,
 * they stay: the next request shows whose they are.
 */
export async function clearIfEnded(deps: Deps & { readonly store: TokenStore }, ended: string): Promise<void> {
  const stored = await deps.store.load();
  if (stored?.access === undefined || stored.refreshToken === ended) return;
  try {
    // Only the service can tell them apart.
    await refreshTokens(deps, stored.access.token);
  } catch (error) {
    if (error instanceof SessionEnded) await deps.store.clear(stored.refreshToken);
    else if (!(error instanceof SessionUnavailable)) throw error;
  }
}

/** Stores new tokens. If another process has stored tokens in the meantime, these are at least as new and are kept. */
async function keep({ store, now }: Deps, presented: string, granted: Granted): Promise<string> {
  const { accessToken: token, refreshToken, lifeMs } = granted;
  const obtainedAtMs = now();
  const expiresAtMs = obtainedAtMs + lifeMs;
  const refreshAtMs = expiresAtMs - Math.min(MAX_MARGIN_MS, lifeMs * MARGIN_SHARE);
  const stored = await store.load();
  if (stored?.refreshToken === presented) {
    const access = { token, obtainedAtMs, refreshAtMs, expiresAtMs };
    await store.save({ ...stored, refreshToken, access }, presented);
  }
  return token;
}
