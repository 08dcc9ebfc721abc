/** Creates DPoP proofs (RFC 9449 section 4.2), with the nonces and the time that servers have sent. */
import { base64url, type ProofKey, sha256 } from "./proof-key.ts";

type ProofsOptions = {
  /** The clock, in ms since the epoch. */
  readonly now: () => number;
};

type Proven = {
  readonly method: string;
  readonly url: string;
  /** The access token that is sent with the proof. */
  readonly accessToken?: string;
};

export type Proofs = {
  /** Returns the value of the header `DPoP`. */
  create(key: ProofKey, request: Proven): Promise<string>;
  /** Remembers the nonce and the time that a server has sent. Returns whether the nonce is new. */
  learn(url: string, headers: Headers): boolean;
};

const encoder = new TextEncoder();
const segment = (value: object) => base64url(encoder.encode(JSON.stringify(value)));

/** The nonce and the time that an origin has sent. */
type Learned = {
  readonly nonce: string | undefined;
  /** How far the origin's clock is ahead of the clock of this machine, in ms. */
  readonly aheadMs: number;
};
const NOTHING: Learned = { nonce: undefined, aheadMs: 0 };

const MAX_ORIGINS = 100;

export function createProofs({ now }: ProofsOptions): Proofs {
  const origins = new Map<string, Learned>();
  return {
    async create({ publicKey, sign }, { method, url, accessToken }) {
      const { origin, pathname } = new URL(url);
      const header = { typ: "dpop+jwt", alg: "ES256", jwk: publicKey };
      const { nonce, aheadMs } = origins.get(origin) ?? NOTHING;
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
      const { origin } = new URL(url);
      const known = origins.get(origin) ?? NOTHING;
      const nonce = headers.get("dpop-nonce") ?? known.nonce;
      // A response from a cache contains the time at which the cached response was made (RFC 9111 section 5.1), so it is ignored.
      const time = headers.has("age") ? Number.NaN : Date.parse(headers.get("date") ?? "");
      const aheadMs = Number.isNaN(time) ? known.aheadMs : time - now();
      if (origins.size >= MAX_ORIGINS && !origins.has(origin)) origins.clear();
      origins.set(origin, { nonce, aheadMs });
      return nonce !== known.nonce;
    },
  };
}
