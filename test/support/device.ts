/** A minimal browser with Device Bound Session Credentials: a cookie jar, a key, and the requests that a browser makes by itself. */
import { generateKeyPairSync, type KeyObject, sign } from "node:crypto";

export const REGISTER = "/v1/auth/device";
export const RENEW = "/v1/auth/device/refresh";
export const REFRESH = "/v1/auth/refresh";

/** The settings for device binding behind a proxy with TLS. The tests send the headers of such a proxy. */
export const BOUND = { DEVICE_BINDING: "on", TRUST_PROXY: "1" } as const;
const FORWARDED = { "x-forwarded-proto": "https", "x-forwarded-for": "192.0.2.7" };

export type Alg = "ES256" | "RS256";
type Key = { readonly alg: Alg; readonly privateKey: KeyObject; readonly jwk: object };

export function deviceKey(alg: Alg = "ES256", bits = 2048): Key {
  const { privateKey, publicKey } =
    alg === "ES256"
      ? generateKeyPairSync("ec", { namedCurve: "P-256" })
      : generateKeyPairSync("rsa", { modulusLength: bits });
  return { alg, privateKey, jwk: publicKey.export({ format: "jwk" }) };
}

const segment = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");

/** Returns a proof for a challenge. @param header members that replace those of the usual header */
export function proof(key: Key, challenge: string, header: object = {}, payload: object = {}): string {
  const input = `${segment({ alg: key.alg, typ: "dbsc+jwt", ...header })}.${segment({ jti: challenge, ...payload })}`;
  const signature = sign("sha256", Buffer.from(input), { key: key.privateKey, dsaEncoding: "ieee-p1363" });
  return `${input}.${signature.toString("base64url")}`;
}

/** Returns the proof for a registration. */
export const registration = (key: Key, challenge: string) => proof(key, challenge, { jwk: key.jwk });

export class Device {
  /** The URL of the instance to which requests are sent. Tests change it. */
  url: string;
  readonly jar = new Map<string, string>();
  key: Key;

  constructor(url: string, refreshToken: string, key = deviceKey()) {
    this.url = url;
    this.key = key;
    this.jar.set("refresh_token", refreshToken);
  }

  /** Returns a second browser profile with the cookies of this one, but without its key. */
  copied(): Device {
    const copy = new Device(this.url, "");
    for (const [name, value] of this.jar) copy.jar.set(name, value);
    return copy;
  }

  async send(path: string, headers: Record<string, string> = {}): Promise<Response> {
    const cookie = [...this.jar].map(([name, value]) => `${name}=${value}`).join("; ");
    const response = await fetch(this.url + path, {
      method: "POST",
      headers: { ...FORWARDED, ...(cookie && { cookie }), ...headers },
    });
    for (const line of response.headers.getSetCookie()) {
      const [, name = "", value = "", age = ""] = /^([^=]+)=([^;]*);.*Max-Age=(\d+)/.exec(line) ?? [];
      if (age === "0") this.jar.delete(name);
      else this.jar.set(name, value);
    }
    return response;
  }

  refresh(headers?: Record<string, string>): Promise<Response> {
    return this.send(REFRESH, headers);
  }

  register(challenge: string): Promise<Response> {
    return this.send(REGISTER, { "secure-session-response": registration(this.key, challenge) });
  }

  renew(challenge: string): Promise<Response> {
    return this.send(RENEW, { "secure-session-response": proof(this.key, challenge) });
  }

  /** Drops the device cookie, as a browser does when it expires. The jar keeps the cookie that names the key. */
  forgetDeviceCookie(): void {
    this.jar.delete("refresh_token_device");
  }

  /** Refreshes, registers a key as offered, and refreshes with the key. The session is bound from then on. */
  async bind(): Promise<Response> {
    const challenge = offerIn(await this.refresh());
    const registered = await this.register(challenge ?? "none was offered");
    if (registered.status !== 200) throw new Error(`not registered: ${registered.status}`);
    const first = await this.refresh();
    if (first.status !== 200) throw new Error(`the first refresh with the key: ${first.status}`);
    return registered;
  }
}

/** Returns the challenge of an offer to register, if there is one. */
export function offerIn(response: Response): string | undefined {
  return challengeOf(response.headers.get("secure-session-registration"));
}

export function challengeOf(offer: string | null | undefined): string | undefined {
  return /;challenge="([^"]+)"/.exec(offer ?? "")?.[1];
}

/** Returns the challenge for the next proof, if there is one. */
export function challengeIn(response: Response): string | undefined {
  return /^"([^"]+)";id="/.exec(response.headers.get("secure-session-challenge") ?? "")?.[1];
}
