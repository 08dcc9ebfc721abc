/** Creates DPoP proofs (RFC 9449 section 4.2), with the nonces and the time that servers have sent. */
import { base64url, type ProofKey, sha256 } from "./proof-key.ts";

type ProofsOptions = {
  /** The clock, in ms since the epoch. */
  readonly now: () => number;
};

type Proven = {
  readonly method: string;
  readonly url: string;
  /** The access token that goes with the proof. */
  readonly accessToken?: string;
};

export type Proofs = {
  /** Returns the value of the header `DPoP`. */
  create(key: ProofKey, request: Proven): Promise<string>;
  /** Learns the nonce and the time of a server. Returns whether it has sent a nonce that was not known. */
  learn(url: string, headers: Headers): boolean;
};

const encoder = new TextEncoder();
const segment = (value: object) => base64url(encoder.encode(JSON.stringify(value)));

/** How many origins' nonces are kept. */
const MAX_NONCES = 100;

export function createProofs({ now }: ProofsOptions): Proofs {
  const nonces = new Map<string, string>();
  /** How far the clock of the servers is ahead of this one, in ms. */
  let aheadMs = 0;
  return {
    async create({ publicKey, sign }, { method, url, accessToken }) {
      const { origin, pathname } = new URL(url);
      const header = { typ: "dpop+jwt", alg: "ES256", jwk: publicKey };
      const nonce = nonces.get(origin);
      const claims = {
        htm: method,
        htu: origin + pathname,
        iat: Math.floor((now() + aheadMs) / 1000),
        jti: crypto.randomUUID(),
        ...(nonce !== undefined && { nonce }),
        ...(accessToken !== undefined && { ath: await sha256(accessToken) }),
      };
      const input = `${segment(header)}.${segment(claims)}`;
      return `${input}.${base64url(await sign(encoder.encode(input)))}`;
    },

    learn(url, headers) {
      const time = Date.parse(headers.get("date") ?? "");
      if (!Number.isNaN(time)) aheadMs = time - now();
      const nonce = headers.get("dpop-nonce");
      const { origin } = new URL(url);
      if (nonce === null || nonce === nonces.get(origin)) return false;
      if (nonces.size >= MAX_NONCES) nonces.clear();
      nonces.set(origin, nonce);
      return true;
    },
  };
}
