import { type AuthInterceptor, authInterceptor, authorizedFetch } from "../browser/authorized-calls.ts";
import { isHttpUrl } from "../platform/net/http-url.ts";
import { checkRuntime } from "../platform/runtime/check.ts";
import { boundCall, boundFetch } from "./bound-requests.ts";
import { createEndpoints } from "./endpoints.ts";
import { SessionUnavailable } from "./errors.ts";
import { generateProofKey, importProofKey, type ProofKey } from "./proof-key.ts";
import { createProofs } from "./proofs.ts";
import { asUnavailable, type StoredTokens, type TokenStore } from "./token-store.ts";
import { clearIfEnded, freshToken, loadTokens, refreshTokens } from "./tokens.ts";

export type TokenSessionOptions = {
  /** The URL of the service. */
  readonly service: string;
  /** The `client_id` of the session. */
  readonly clientId: string;
  readonly store: TokenStore;
  /**
   * Whether the session is bound to a key (DPoP, RFC 9449). With `true`, `start` creates a key and stores it with the refresh token.
   * Sessions that were started without a key stay unbound. Default: false.
   */
  readonly dpop?: boolean | ProofKey;
  /** The origins to which `fetch` and `interceptor` send the access token. Default: the origin of the service. */
  readonly origins?: readonly string[];
  /** How long a request to the service may take, in ms. It must be less than half of the service's REUSE_INTERVAL. Default: 4,000. */
  readonly requestTimeoutMs?: number;
  /** The function that sends requests. Default: that of the platform. */
  readonly fetch?: (url: string | Request, init?: RequestInit) => Promise<Response>;
  /** Returns the time in ms since the epoch. Default: the clock of the platform. */
  readonly now?: () => number;
};

export type TokenSession = {
  /** Stores the refresh token of a login, and the key if the login has bound the session to one. @throws SessionUnavailable */
  start(tokens: Pick<StoredTokens, "refreshToken" | "key">): Promise<void>;
  /** Returns a valid access token. @throws SessionEnded, SessionUnavailable */
  accessToken(): Promise<string>;
  /** Sends a request with the access token. If the response is 401, it is sent once more with another token. */
  fetch(input: string | URL | Request, init?: RequestInit): Promise<Response>;
  /** An interceptor that does the same for Connect calls. */
  readonly interceptor: AuthInterceptor;
  /** Ends the session, and deletes its tokens. If the service cannot be reached, they are kept. @throws SessionUnavailable */
  end(): Promise<void>;
};

const REQUEST_TIMEOUT_MS = 4_000;

/**
 * Creates the session of a client that keeps its own tokens. docs/tasks/clients.md has the rules.
 * @throws TypeError if `service`, `clientId` or `store` is missing or of the wrong type
 */
export function createTokenSession(options: TokenSessionOptions): TokenSession {
  checkRuntime("@session-service/client");
  checkOptions(options);
  const store = asUnavailable(options.store);
  const { requestTimeoutMs = REQUEST_TIMEOUT_MS, fetch = globalThis.fetch, now = Date.now } = options;
  const { service, clientId, origins = [new URL(service).origin], dpop = false } = options;
  const proofs = createProofs({ now });
  const endpoints = createEndpoints({ service, clientId, requestTimeoutMs, fetch, proofs });
  const keyOf = createKeyOf(dpop);
  const deps = { store, endpoints, now, keyOf };
  const key = async () => keyOf(await loadTokens(deps));
  let refreshing: Promise<string> | undefined;
  let last: Promise<unknown> = Promise.resolve();

  /** Runs changes of the stored tokens one by one, so that no refresh overwrites a new login, or stores tokens after the end. */
  function exclusive<T>(change: () => Promise<T>): Promise<T> {
    const next = last.then(change, change);
    last = next;
    return next;
  }

  function refresh(refused?: string): Promise<string> {
    refreshing ??= exclusive(() => refreshTokens(deps, refused)).finally(() => {
      refreshing = undefined;
    });
    return refreshing;
  }

  async function accessToken(): Promise<string> {
    return freshToken(await loadTokens(deps), now()) ?? refresh();
  }

  async function tokenFor(url: string): Promise<string> {
    const { origin } = new URL(url);
    if (origin === "null" || !origins.some((one) => URL.parse(one)?.origin === origin))
      throw new TypeError(`${origin} is not one of the origins that get the access token`);
    return accessToken();
  }

  const replace = (refused: string) => refresh(refused).catch(() => undefined);
  return {
    async start({ refreshToken, key: given }) {
      const own = given ?? (dpop === true ? await generateProofKey() : undefined);
      await exclusive(() => store.save({ refreshToken, ...(own && { key: own }) }));
    },
    accessToken,
    fetch: authorizedFetch(tokenFor, replace, { fetch: boundFetch({ proofs, key }, (request) => fetch(request)) }),
    interceptor: (next) => authInterceptor(tokenFor, replace)(boundCall({ proofs, key }, next)),
    end: () =>
      exclusive(async () => {
        const stored = await store.load();
        if (stored === undefined) return;
        await endpoints.revoke(stored.refreshToken, await keyOf(stored));
        await store.clear(stored.refreshToken);
        await clearIfEnded(deps, stored.refreshToken);
      }),
  };
}

function checkOptions({ service, clientId, store }: Partial<TokenSessionOptions> = {}): void {
  if (!isHttpUrl(service))
    throw new TypeError("createTokenSession: service must be an http:// or https:// URL without a password");
  if (typeof clientId !== "string" || clientId === "")
    throw new TypeError("createTokenSession: clientId must be a text that is not empty");
  if (typeof store?.load !== "function" || typeof store.save !== "function" || typeof store.clear !== "function")
    throw new TypeError("createTokenSession: store must have load, save and clear, as createFileStore makes it");
}

/** Returns the function that finds the key. A key in a keychain is used for every session; a stored key is imported once. */
function createKeyOf(dpop: boolean | ProofKey) {
  let imported: { readonly d: string; readonly key: Promise<ProofKey> } | undefined;
  return async ({ key }: StoredTokens): Promise<ProofKey | undefined> => {
    if (typeof dpop === "object") return dpop;
    if (key === undefined) return undefined;
    if (imported === undefined || imported.d !== key.d) {
      imported = { d: key.d, key: importProofKey(key).catch(refuseStoredKey) };
    }
    return imported.key;
  };
}

function refuseStoredKey(cause: unknown): never {
  throw new SessionUnavailable("the stored key is not one", undefined, { cause });
}
