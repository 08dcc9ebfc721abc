/** A receiver of SSF 1.0 that follows the specifications alone, and is configured only with the issuer of the service. */
import { createRemoteJWKSet, customFetch, type JWTPayload, jwtVerify } from "jose";
import { expect } from "vitest";
import type { Service } from "../../support/service.ts";

/** The public URL of the admin API, which a proxy would serve. */
export const SIGNALS_URL = "https://signals.example/api";
export const ISSUER = "https://auth.example/tenant";

export const PUSH = "urn:ietf:rfc:8935";
export const POLL = "urn:ietf:rfc:8936";
export const SESSION_REVOKED = "https://schemas.openid.net/secevent/caep/event-type/session-revoked";
export const SESSION_ESTABLISHED = "https://schemas.openid.net/secevent/caep/event-type/session-established";
export const TOKEN_CLAIMS_CHANGE = "https://schemas.openid.net/secevent/caep/event-type/token-claims-change";

export type Json = { readonly [name: string]: unknown };
export type Reply = {
  readonly status: number;
  readonly type: string;
  readonly text: string;
  readonly json: Json;
  /** The value of the header `WWW-Authenticate`. */
  readonly challenge: string | null;
};

export class StreamReceiver {
  readonly #service: Service;
  readonly #token: string;

  constructor(service: Service, token: string = service.adminToken) {
    this.#service = service;
    this.#token = token;
  }

  /** Translates a public URL into that of a listener, as the proxies in front of both listeners would. */
  #reach(url: string): string {
    const { origin, pathname } = new URL(ISSUER);
    return url
      .replace(SIGNALS_URL, this.#service.adminUrl)
      .replace(`${origin}${pathname}/.well-known/jwks.json`, `${this.#service.publicUrl}/.well-known/jwks.json`)
      .replace(origin, this.#service.publicUrl);
  }

  async call(method: string, url: string, body?: unknown, token = this.#token): Promise<Reply> {
    const response = await fetch(this.#reach(url), {
      method,
      headers: {
        accept: "application/json",
        ...(token !== "" && { authorization: `Bearer ${token}` }),
        ...(body !== undefined && { "content-type": "application/json" }),
      },
      ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    const type = response.headers.get("content-type") ?? "";
    const json = type.startsWith("application/json") && text !== "" ? JSON.parse(text) : {};
    return { status: response.status, type, text, json, challenge: response.headers.get("www-authenticate") };
  }

  /** Reads the metadata. The well-known path is inserted between the host and the path of the issuer (SSF 1.0 section 7.2). */
  async discover(): Promise<Json> {
    const { origin, pathname } = new URL(ISSUER);
    const found = await this.call("GET", `${origin}/.well-known/ssf-configuration${pathname}`, undefined, "");
    expect([found.status, found.type]).toEqual([200, "application/json"]);
    expect(found.json.issuer).toBe(ISSUER);
    return found.json;
  }

  async endpoint(name: string): Promise<string> {
    const url = (await this.discover())[name];
    if (typeof url !== "string") throw new TypeError(`no ${name}`);
    return url;
  }

  async streams(
    method: string,
    { id, body, token }: { id?: string; body?: unknown; token?: string } = {},
  ): Promise<Reply> {
    const url = await this.endpoint("configuration_endpoint");
    return this.call(method, id === undefined ? url : `${url}?stream_id=${encodeURIComponent(id)}`, body, token);
  }

  /** Sends a POST request to an endpoint that the metadata names. */
  async post(name: string, body: unknown, token?: string): Promise<Reply> {
    return this.call("POST", await this.endpoint(name), body, token);
  }

  /** Verifies a security event token (RFC 8417, SSF 1.0 section 4.1). */
  async verify(token: string, audience: string): Promise<JWTPayload> {
    const jwks = createRemoteJWKSet(new URL(await this.endpoint("jwks_uri")), {
      [customFetch]: (url: string, options: RequestInit) => fetch(this.#reach(url), options),
    });
    const { payload } = await jwtVerify(token, jwks, { issuer: ISSUER, audience, typ: "secevent+jwt" });
    expect([payload.sub, payload.exp]).toEqual([undefined, undefined]);
    expect(payload.jti).toEqual(expect.any(String));
    expect(payload.iat).toBeLessThanOrEqual(Math.ceil(Date.now() / 1000));
    expect(Object.keys(payload.events as object)).toHaveLength(1);
    return payload;
  }
}
