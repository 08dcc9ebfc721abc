/** Binds sessions to devices by script, for browsers without Device Bound Session Credentials. Other pages need not load this module. */
import type { Realm } from "../realm.ts";
import { type Claims, claimsOf } from "../token.ts";
import { createDeviceKeys, type KeysRealm } from "./keys.ts";
import { createDeviceRequests, type DeviceRequests, quoted } from "./requests.ts";

/** The global object, as a structural type. Without `indexedDB` or `crypto`, the kit works, but binds no session. */
export type DeviceRealm = Realm & Partial<KeysRealm>;

const REFRESH = "/v1/auth/refresh";
const UNAUTHORIZED = 401;
const UNAVAILABLE = 503;

/**
 * Returns the global object for `createSession`. The kit's requests then prove the possession of a key of this browser. A browser that does
 * this itself takes precedence. The key is kept in IndexedDB and cannot be read by scripts.
 * @example
 * export const session = createSession({}, withDeviceKey());
 */
export function withDeviceKey(realm: DeviceRealm = globalThis): Realm {
  const { indexedDB, crypto } = realm;
  if (!indexedDB || !crypto?.subtle) return realm;
  const fetch = fetchWithDeviceKey(realm, { indexedDB, crypto });
  return new Proxy(realm, {
    get(target, name) {
      if (name === "fetch") return fetch;
      const value: unknown = Reflect.get(target, name);
      // Functions of the browser work only on its own global object. Its classes need no binding.
      return typeof value === "function" && !value.prototype ? value.bind(target) : value;
    },
  });
}

function fetchWithDeviceKey(realm: Realm, { indexedDB, crypto }: KeysRealm): Realm["fetch"] {
  let requests: DeviceRequests | undefined;
  let registers = false;

  /** Registers a key for the session that was refreshed, if the service offers to bind it. */
  async function accept(current: DeviceRequests, response: Response): Promise<void> {
    const offered = quoted(response.headers.get("secure-session-registration"), ";challenge=");
    if (!offered || registers) return;
    // If the response is not from the service, this throws, and no key is registered.
    const { data } = (await response.json()) as { readonly data: { readonly accessToken: string } };
    const { sid } = claimsOf(data.accessToken) as Claims;
    if (!sid || registers) return;
    registers = true;
    current
      .register(sid, offered)
      // A failure needs no treatment: a browser without storage for keys cannot register one, and after any other failure the next refresh
      // offers a challenge again.
      .catch(() => {})
      .finally(() => {
        registers = false;
      });
  }

  async function refresh(baseUrl: string, init: RequestInit): Promise<Response> {
    const keys = createDeviceKeys({ indexedDB, crypto }, `session-device/1:${baseUrl}`);
    requests ??= createDeviceRequests(realm, crypto, keys, baseUrl);
    const current = requests;
    // A browser without storage for keys continues without a key.
    const known = await keys.all().catch(() => []);
    const attempt = async (): Promise<Response> =>
      (!current.isRenewed() && (await current.renew(init, known))) || realm.fetch(baseUrl + REFRESH, init);
    const wasRenewed = current.isRenewed();
    let response = await attempt();
    // The device cookie seems to be missing or to have expired, although this module considered its renewal unnecessary.
    const { status } = response;
    if (known.length > 0 && (status === UNAUTHORIZED || (status === UNAVAILABLE && wasRenewed))) {
      current.doubt();
      response = await attempt();
    }
    // The response is evaluated before the kit gets it, because the kit then aborts the requests that are still under way.
    await accept(current, response.clone()).catch(() => {});
    return response;
  }

  return (url: string | Request, init: RequestInit = {}): Promise<Response> => {
    if (typeof url !== "string" || !url.endsWith(REFRESH)) return realm.fetch(url, init);
    const { signal } = init;
    const aborted = new Promise<never>((_, reject) => {
      signal?.addEventListener("abort", () => reject(signal.reason));
    });
    // The storage of the browser may never respond.
    return Promise.race([refresh(url.slice(0, -REFRESH.length), init), aborted]);
  };
}
