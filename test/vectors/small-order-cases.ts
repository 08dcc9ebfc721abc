/** Cases about points of small order of Ed25519, for which anybody can sign (RFC 8032 section 8.9). */
import { createHash, hash } from "node:crypto";
import { CLAIMS, HEAD, json, NOW_MS, raw, type VectorCase } from "./format.ts";
import { MAIN, publicJwk } from "./keys.ts";
import type { ClientKey, Prover } from "./prover.ts";
import { CLIENT } from "./prover.ts";

/** The points of small order as they are encoded, some of them with both signs of x, and not reduced, by name. */
const POINTS: Readonly<Record<string, string>> = {
  "order 1": "0100000000000000000000000000000000000000000000000000000000000000",
  "order 1, with the other sign": "0100000000000000000000000000000000000000000000000000000000000080",
  "order 1, not reduced": "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
  "order 2": "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
  "order 4": "0000000000000000000000000000000000000000000000000000000000000000",
  "order 4, with the other sign": "0000000000000000000000000000000000000000000000000000000000000080",
  "order 4, not reduced": "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
  "order 8": "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
  "order 8, with the other sign": "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
  "order 8, another": "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
  "order 8, another, with the other sign": "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
};

const GROUP_ORDER = 2n ** 252n + 27742317777372353535851937790883648493n;
/** A signature whose R is the neutral point and whose S is 0: it is valid if the hash is a multiple of the order of the point. */
const SIGNATURE = Buffer.alloc(64).fill(1, 0, 1);

/** Signs for a point of small order, without any secret. @param inputOf returns another text for each number */
function forge(point: Uint8Array, inputOf: (attempt: number) => string): string {
  for (let attempt = 0; ; attempt++) {
    const input = inputOf(attempt);
    const digest = createHash("sha512").update(SIGNATURE.subarray(0, 32)).update(point).update(input).digest();
    const factor = BigInt(`0x${digest.reverse().toString("hex")}`) % GROUP_ORDER;
    if (factor % 8n === 0n) return `${input}.${raw(SIGNATURE)}`;
  }
}

export function smallOrderCases({ bound, headerOf, payloadOf, presented }: Prover): VectorCase[] {
  return Object.entries(POINTS).flatMap(([name, hex]): VectorCase[] => {
    const point = Buffer.from(hex, "hex");
    const jwk = { crv: "Ed25519", kty: "OKP", x: raw(point) };
    const key: ClientKey = {
      ...CLIENT,
      alg: "EdDSA",
      jwk,
      thumbprint: hash("sha256", JSON.stringify(jwk), "base64url"),
    };
    const token = bound(key);
    const title = `forged for a point of ${name}`;
    const proof = forge(point, (n) => `${headerOf(key)}.${payloadOf(token, title, { n })}`);
    const kid = "weak";
    const header = json({ ...HEAD, alg: "EdDSA", kid });
    const keys = { keys: [publicJwk(MAIN), { ...jwk, kid }] };
    const weak = forge(point, (n) => `${header}.${json({ ...CLAIMS, n })}`);
    return [
      presented(title, [proof], "proof_forged", token),
      { name: `the key set: a point of ${name}`, token: weak, nowMs: NOW_MS, keys, verdict: "unknown_key" },
    ];
  });
}
