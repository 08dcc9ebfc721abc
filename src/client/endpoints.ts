/** The requests to the token endpoint (RFC 6749 section 6) and the revocation endpoint (RFC 7009). */
import { SessionUnavailable } from "./errors.ts";

type EndpointsOptions = {
  readonly service: string;
  readonly clientId: string;
  readonly requestTimeoutMs: number;
  readonly fetch: (url: string, init: RequestInit) => Promise<Response>;
};

export type Granted = {
  readonly refreshToken: string;
  readonly accessToken: string;
  readonly lifeMs: number;
};

export type Endpoints = {
  /** Exchanges a refresh token. @returns undefined if the session is over @throws SessionUnavailable */
  refresh(refreshToken: string): Promise<Granted | undefined>;
  /** Ends the session of a refresh token. @throws SessionUnavailable */
  revoke(refreshToken: string): Promise<void>;
};

const TOKEN_PATH = "/v1/oauth/token";
const REVOKE_PATH = "/v1/oauth/revoke";

export function createEndpoints({ service, clientId, requestTimeoutMs, fetch }: EndpointsOptions): Endpoints {
  const base = service.replace(/\/$/, "");

  async function post(path: string, form: Readonly<Record<string, string>>) {
    try {
      const response = await fetch(base + path, {
        method: "POST",
        headers: { accept: "application/json" },
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
    async refresh(refreshToken) {
      const form = { grant_type: "refresh_token", refresh_token: refreshToken, client_id: clientId };
      const { response, body } = await post(TOKEN_PATH, form);
      if (response.status === 400 && body.error === "invalid_grant") return undefined;
      const { access_token: accessToken, refresh_token: next, expires_in: seconds } = body;
      const isGranted = typeof accessToken === "string" && typeof next === "string" && typeof seconds === "number";
      if (!response.ok || !isGranted) throw undecided(response);
      return { accessToken, refreshToken: next, lifeMs: seconds * 1000 };
    },
    async revoke(refreshToken) {
      const { response } = await post(REVOKE_PATH, { token: refreshToken, client_id: clientId });
      if (!response.ok) throw undecided(response);
    },
  };
}

function undecided({ status, headers }: Response): SessionUnavailable {
  const seconds = Number(headers.get("retry-after") ?? Number.NaN);
  return new SessionUnavailable(`the service responded with ${status}`, seconds >= 0 ? seconds * 1000 : undefined);
}
