import { authorizedFetch } from "../browser/fetch.ts";
import { type AuthInterceptor, authInterceptor } from "../browser/interceptor.ts";
import { createEndpoints } from "./endpoints.ts";
import type { StoredTokens, TokenStore } from "./token-store.ts";
import { freshToken, loadTokens, refreshTokens } from "./tokens.ts";

export type TokenSessionOptions = {
  /** The URL of the service. */
  readonly service: string;
  /** `client_id` of the session. */
  readonly clientId: string;
  readonly store: TokenStore;
  /** The origins to which `fetch` and `interceptor` send the access token. Default: that of the service. */
  readonly origins?: readonly string[];
  /** How long a request to the service may take, in ms: less than half of its REUSE_INTERVAL. Default: 4,000. */
  readonly requestTimeoutMs?: number;
  /** Default: that of the platform. */
  readonly fetch?: (url: string | Request, init?: RequestInit) => Promise<Response>;
  /** The clock, in ms since the epoch. Default: that of the platform. */
  readonly now?: () => number;
};

export type TokenSession = {
  /** Stores the refresh token that a login has returned. */
  start(tokens: Pick<StoredTokens, "refreshToken">): Promise<void>;
  /** Returns a valid access token. @throws SessionEnded, SessionUnavailable */
  accessToken(): Promise<string>;
  /** Sends a request with the access token, and once more with another one if it is refused with 401. */
  fetch(input: string | URL | Request, init?: RequestInit): Promise<Response>;
  /** Does the same for calls of Connect. */
  readonly interceptor: AuthInterceptor;
  /** Ends the session, and removes its tokens. If the service cannot be asked, they stay. @throws SessionUnavailable */
  end(): Promise<void>;
};

const REQUEST_TIMEOUT_MS = 4_000;

/** Creates the session of a client that keeps its own tokens. docs/clients.md has the rules. */
export function createTokenSession(options: TokenSessionOptions): TokenSession {
  const { store, requestTimeoutMs = REQUEST_TIMEOUT_MS, fetch = globalThis.fetch, now = Date.now } = options;
  const { service, clientId, origins = [new URL(service).origin] } = options;
  const endpoints = createEndpoints({ service, clientId, requestTimeoutMs, fetch });
  const deps = { store, endpoints, now };
  let refreshing: Promise<string> | undefined;

  function refresh(refused?: string): Promise<string> {
    refreshing ??= refreshTokens(deps, refused).finally(() => {
      refreshing = undefined;
    });
    return refreshing;
  }

  async function accessToken(): Promise<string> {
    return freshToken(await loadTokens(deps), now()) ?? refresh();
  }

  async function tokenFor(url: string): Promise<string> {
    const { origin } = new URL(url);
    if (!origins.includes(origin)) throw new TypeError(`${origin} is not one of the origins that get the access token`);
    return accessToken();
  }

  const replace = (refused: string) => refresh(refused).catch(() => undefined);
  return {
    start: ({ refreshToken }) => store.save({ refreshToken }),
    accessToken,
    fetch: authorizedFetch(tokenFor, replace, { fetch }),
    interceptor: authInterceptor(tokenFor, replace),
    async end() {
      const stored = await store.load();
      if (stored === undefined) return;
      await endpoints.revoke(stored.refreshToken);
      await store.clear();
    },
  };
}
