/** The two requests of device binding: registering a key, and renewing the device cookie. */
import type { Realm } from "../realm.ts";
import { countdown } from "../token.ts";
import type { DeviceKeys, DeviceRecord, KeyPair, KeysRealm } from "./keys.ts";

/** How long this script waits after the offer of a challenge, in ms. A browser that binds sessions itself has done so by then. */
const HEAD_START_MS = 5_000;
/** The time limit of a registration, in ms. The service responds much faster. */
const TIMEOUT_MS = 15_000;
/** How long after a renewal no other one is needed, in ms. A device cookie lives longer. */
const RENEWED_MS = 60_000;
/** How often a request is sent at most: if its challenge has expired, the response contains a new one. */
const MAX_ATTEMPTS = 3;

const TOO_MANY_REQUESTS = 429;

const expired = () => 0;

/** Returns the text of a quoted string in a structured field (RFC 9651): a challenge or a parameter. */
export const quoted = (header: string | null, before = ""): string | undefined =>
  header?.split(`${before}"`)[1]?.split('"')[0];

/** Returns whether the service has responded that there is no key to renew (`continue: false`, as for browsers that bind sessions). */
async function endsKey(response: Response): Promise<boolean> {
  const body = (await response.json().catch(() => {})) as { readonly continue?: boolean } | undefined;
  return body?.continue === false;
}

export type DeviceRequests = ReturnType<typeof createDeviceRequests>;

export function createDeviceRequests(realm: Realm, crypto: KeysRealm["crypto"], keys: DeviceKeys, baseUrl: string) {
  let challenge: string | undefined;
  /** Returns for how long the device cookie need not be renewed, in ms. */
  let restMs = expired;

  /** Sends a request. With `record`, it proves possession of that key, if a challenge is known. Remembers the challenge in the response. */
  async function post(path: string, init: RequestInit, record?: DeviceRecord, registers?: true): Promise<Response> {
    const headers: Record<string, string> =
      record && challenge
        ? { "secure-session-response": await proofOf(crypto, record.keys, challenge, registers) }
        : {};
    const url = `${baseUrl}/v1/auth/device${path}`;
    const response = await realm.fetch(url, { ...init, method: "POST", credentials: "include", headers });
    challenge = quoted(response.headers.get("secure-session-challenge")) ?? challenge;
    return response;
  }

  return {
    /** Returns whether the cookie was renewed so recently that it must still be valid, unless it was deleted. */
    isRenewed: () => restMs() > 0,

    /** Records that the device cookie seems to be missing, so that the next call renews it. */
    doubt(): void {
      restMs = expired;
    },

    /**
     * Renews the device cookie with the `known` keys of this browser.
     * @returns a response that does not show whether the key is valid, such as one of an outage; undefined if the refresh may continue
     */
    async renew(init: RequestInit, known: readonly DeviceRecord[]): Promise<Response | undefined> {
      let record = known.at(-1);
      for (let attempt = 0; record && attempt < MAX_ATTEMPTS; attempt++) {
        const response = await post("/refresh", init, record);
        const next = response.headers.get("secure-session-challenge");
        if (response.ok && (next || (await endsKey(response)))) {
          restMs = countdown(realm, RENEWED_MS);
          return undefined;
        }
        // The response is not from the service, or reports an outage. It does not show whether the key is valid, so the caller gets it.
        if (response.ok || response.status >= TOO_MANY_REQUESTS) return response;
        // The cookies may belong to another session than the latest key, because another user may have signed in since. If the response
        // names no session, it contains no challenge, and the refresh may continue.
        const sid = quoted(next, ";id=");
        record = known.find((each) => each.sid === sid);
      }
      return undefined;
    },

    /** Registers the key of this browser for a session, unless another key is registered already. */
    async register(sid: string, offered: string): Promise<void> {
      await new Promise<void>((resolve) => realm.setTimeout(resolve, HEAD_START_MS));
      const init = { keepalive: true, redirect: "error" as const, signal: AbortSignal.timeout(TIMEOUT_MS) };
      // This request has no proof. The response contains a challenge only if the session has a key.
      const probe = await post("/refresh", init);
      if (!probe.ok && !(await keys.all()).some((record) => record.sid === sid)) return;
      challenge = offered;
      const response = await post("", init, await keys.obtain(sid), true);
      if (response.ok) restMs = countdown(realm, RENEWED_MS);
    },
  };
}

const encode = (bytes: Uint8Array): string =>
  btoa(String.fromCharCode(...bytes))
    .replace(/\+/g, "-")
    .replace(/\//g, "_")
    .replace(/=/g, "");

const segment = (value: unknown): string => encode(new TextEncoder().encode(JSON.stringify(value)));

/** Returns a proof of possession of the key. @param registers whether the proof registers the key, and so contains the public key */
async function proofOf(
  { subtle }: Pick<Crypto, "subtle">,
  { privateKey, publicKey }: KeyPair,
  challenge: string,
  registers?: true,
): Promise<string> {
  const header: Record<string, unknown> = { alg: "ES256", typ: "dbsc+jwt" };
  if (registers) {
    const { kty, crv, x, y } = await subtle.exportKey("jwk", publicKey);
    header.jwk = { kty, crv, x, y };
  }
  const input = `${segment(header)}.${segment({ jti: challenge })}`;
  const signature = await subtle.sign({ name: "ECDSA", hash: "SHA-256" }, privateKey, new TextEncoder().encode(input));
  return `${input}.${encode(new Uint8Array(signature))}`;
}
