/** The two requests of device binding: registering a key, and renewing the device cookie. */
import type { Realm } from "../realm.ts";
import { countdown } from "../token.ts";
import type { DeviceKeys, DeviceRecord, KeysRealm } from "./keys.ts";
import { proofOf } from "./proof.ts";

/** A browser that binds sessions itself has done so within this time after the offer, ms. */
const HEAD_START_MS = 5_000;
/** The time limit of a registration, ms: longer than any honest response takes. */
const TIMEOUT_MS = 15_000;
/** A device cookie lives longer than this, ms. Within this time it needs no other renewal. */
const RENEWED_MS = 60_000;
/** The challenge of an earlier response may have become too old. The challenge of a refusal is new. */
const MAX_ATTEMPTS = 3;

const FORBIDDEN = 403;
const TOO_MANY_REQUESTS = 429;

const expired = () => 0;

/** Returns the text of a quoted string in a structured field (RFC 9651), which is a challenge or a parameter. */
export const quoted = (header: string | null, before = ""): string | undefined =>
  header?.split(`${before}"`)[1]?.split('"')[0];

/** Whether the service has reported that there is nothing to renew. */
async function endsKey(response: Response): Promise<boolean> {
  const body = (await response.json().catch(() => {})) as { readonly continue?: boolean } | undefined;
  return body?.continue === false;
}

export type DeviceRequests = ReturnType<typeof createDeviceRequests>;

/** @param baseUrl where the service is */
export function createDeviceRequests(realm: Realm, crypto: KeysRealm["crypto"], keys: DeviceKeys, baseUrl: string) {
  let challenge: string | undefined;
  /** How long the device cookie need not be renewed, ms. */
  let restMs = expired;

  /** A request with a proof, if there is a challenge to prove possession for. Notes the next challenge. */
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
    /** Whether it was renewed so recently that the cookie is valid still, unless it was deleted. */
    isRenewed: () => restMs() > 0,

    /** The cookie that was set is not there: the next renewal is not put off. */
    doubt(): void {
      restMs = expired;
    },

    /**
     * Renews the device cookie.
     *
     * @param known the keys of this browser
     * @returns a response that does not tell whether the key is still valid; undefined if the refresh is to continue
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
        // Not of the service, or an outage.
        if (response.ok || response.status >= TOO_MANY_REQUESTS) return response;
        if (response.status !== FORBIDDEN) return undefined;
        // The cookies may be of another session than the latest key: another user has signed in since.
        const sid = quoted(next, ";id=");
        record = known.find((each) => each.sid === sid);
      }
      return undefined;
    },

    /** Registers the key of this browser for a session, unless another one is registered already. */
    async register(sid: string, offered: string): Promise<void> {
      await new Promise<void>((resolve) => realm.setTimeout(resolve, HEAD_START_MS));
      const init = { keepalive: true, signal: AbortSignal.timeout(TIMEOUT_MS) };
      // The request has no proof, so a session that has a key gets a challenge, and one that has none has nothing to renew.
      const probe = await post("/refresh", init);
      if (!probe.ok && !(await keys.all()).some((record) => record.sid === sid)) return;
      challenge = offered;
      const response = await post("", init, await keys.obtain(sid), true);
      if (response.ok) restMs = countdown(realm, RENEWED_MS);
    },
  };
}
