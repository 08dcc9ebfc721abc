/** The requests to the token endpoint (RFC 6749 section 6) and the revocation endpoint (RFC 7009). */
import { SessionUnavailable } from "./errors.ts";
import type { ProofKey } from "./proof-key.ts";
import type { Proofs } from "./proofs.ts";

type EndpointsOptions = {
  readonly service: string;
  readonly clientId: string;
  readonly requestTimeoutMs: number;
  readonly fetch: (url: string, init: RequestInit) => Promise<Response>;
  readonly proofs: Proofs;
};

export type Granted = {
  readonly refreshToken: string;
  readonly accessToken: string;
  readonly lifeMs: number;
};

export type Endpoints = {
  /** Exchanges a refresh token for new tokens. @returns undefined if the session has ended @throws SessionUnavailable */
  refresh(refreshToken: string, key?: ProofKey): Promise<Granted | undefined>;
  /** Ends the session of a refresh token. @throws SessionUnavailable */
  revoke(refreshToken: string, key?: ProofKey): Promise<void>;
};

const TOKEN_PATH = "/v1/oauth/token";
const REVOKE_PATH = "/v1/oauth/revoke";

export function createEndpoints({ service, clientId, requestTimeoutMs, fetch, proofs }: EndpointsOptions): Endpoints {
  const base = service.replace(/\/$/, "");

  async function post(path: string, form: Readonly<Record<string, string>>, key: ProofKey | undefined) {
    const url = base + path;
    const first = await attempt(url, form, key);
    const isNew = proofs.learn(url, first.response.headers);
    return isNew && first.body.error === "use_dpop_nonce" ? attempt(url, form, key) : first;
  }

  async function attempt(url: string, form: Readonly<Record<string, string>>, key: ProofKey | undefined) {
    const proof = key && (await proofs.create(key, { method: "POST", url }));
    try {
      const response = await fetch(url, {
        method: "POST",
        headers: { accept: "application/json", ...(proof !== undefined && { dpop: proof }) },
        body: new URLSearchParams(form),
        redirect: "error",
        signal: AbortSignal.timeout(requestTimeoutMs),
      });
      const body: unknown = await response.json();
      return { response, body: (body ?? {}) as Readonly<Record<string, unknown>> };
    } catch (cause) {
      throw new SessionUnavailable("the service could not be asked", undefined, { cause });
    }
  }

  return {
    async refresh(refreshToken, key) {
      const form = { grant_type: "refresh_token", refresh_token: refreshToken, client_id: clientId };
      const { response, body } = await post(TOKEN_PATH, form, key);
      if (response.status === 400 && body.error === "invalid_grant") return undefined;
      const { access_token: accessToken, refresh_token: next, expires_in: seconds } = body;
      const isGranted = typeof accessToken === "string" && typeof next === "string" && typeof seconds === "number";
      if (!response.ok || !isGranted) throw undecided(response);
      return { accessToken, refreshToken: next, lifeMs: seconds * 1000 };
    },
    async revoke(refreshToken, key) {
      const { response } = await post(REVOKE_PATH, { token: refreshToken, client_id: clientId }, key);
      if (!response.ok) throw undecided(response);
    },
  };
}

function undecided({ status, headers }: Response): SessionUnavailable {
  const seconds = Number(headers.get("retry-after") ?? Number.NaN);
  return new SessionUnavailable(`the service responded with ${status}`, seconds >= 0 ? seconds * 1000 : undefined);
}
