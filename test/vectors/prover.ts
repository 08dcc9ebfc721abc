/** Makes the requests of the vectors whose client proves a key (DPoP). */
import { createPrivateKey, hash, type KeyObject } from "node:crypto";
import { type Forge, json, NOW, NOW_MS, type VectorCase } from "./format.ts";
import { createEcKey, createEdKey, type Sign, type SigningKey } from "./keys.ts";
import { RSA_JWK } from "./rsa-key.ts";

type Members = Readonly<Record<string, string>>;
export type ClientKey = SigningKey & { readonly jwk: Members; readonly thumbprint: string };

function clientKey(alg: string, privateKey: KeyObject, jwk: Members): ClientKey {
  const sorted = Object.fromEntries(Object.entries(jwk).toSorted(([one], [other]) => (one < other ? -1 : 1)));
  return { alg, privateKey, jwk, thumbprint: hash("sha256", JSON.stringify(sorted), "base64url") };
}

function ecClient(name: string): ClientKey {
  const { privateKey, privateJwk } = createEcKey(name);
  const { kty, crv, x, y } = privateJwk as unknown as Members;
  return clientKey("ES256", privateKey, { kty, crv, x, y } as Members);
}

const { privateKey, privateJwk } = createEdKey("client-eddsa");
const { x } = privateJwk as unknown as Members;
const edwards = (alg: string) => clientKey(alg, privateKey, { kty: "OKP", crv: "Ed25519", x } as Members);
const { kty, n, e } = RSA_JWK;

export const CLIENT = ecClient("client-es256");
export const OTHER_CLIENT = ecClient("client-es256-other");
export const RSA_CLIENT = clientKey("RS256", createPrivateKey({ key: RSA_JWK, format: "jwk" }), { kty, n, e });
export const EDWARDS_CLIENT = edwards("EdDSA");
export const ED25519_CLIENT = edwards("Ed25519");

export const METHOD = "POST";
export const URL_OF_REQUEST = "https://api.example/things/1";

export type ProofChange = {
  readonly header?: object;
  readonly claims?: object;
  /** The key in the header of the proof. The key `by` signs the proof; by default both are the same. */
  readonly key?: ClientKey;
  readonly by?: SigningKey;
  /** The access token whose hash is the claim `ath`. */
  readonly token?: string;
};

/** Returns functions that make proofs and test cases with them. */
export function createProver(sign: Sign, forge: Forge) {
  const bound = (key: ClientKey = CLIENT, claims: object = {}) =>
    forge.token({}, { cnf: { jkt: key.thumbprint }, ...claims });
  const signed = (header: string, payload: string, by: SigningKey = CLIENT) =>
    `${header}.${payload}.${sign(`${header}.${payload}`, by)}`;

  const headerOf = (key: ClientKey, header: object = {}) =>
    json({ typ: "dpop+jwt", alg: key.alg, jwk: key.jwk, ...header });
  const payloadOf = (token: string, jti: string, claims: object = {}) => {
    const ath = hash("sha256", token, "base64url");
    return json({ htm: METHOD, htu: URL_OF_REQUEST, iat: NOW, jti, ath, ...claims });
  };

  /** Makes a proof for the request. Its `jti` is the name of the case, and thus unique. */
  function proof(
    jti: string,
    { header, claims, key = CLIENT, by = key, token = bound(key) }: ProofChange = {},
  ): string {
    return signed(headerOf(key, header), payloadOf(token, jti, claims), by);
  }

  /** Returns a case of a request with these proofs. All such cases have the same method and URL. */
  function presented(
    name: string,
    proofs: readonly string[],
    verdict: VectorCase["verdict"],
    token = bound(),
    changes: Partial<VectorCase> = {},
  ): VectorCase {
    const requests = proofs.map((each) => ({ method: METHOD, url: URL_OF_REQUEST, proof: each }));
    return { name: `a proof: ${name}`, token, nowMs: NOW_MS, requests, verdict, ...changes };
  }

  /** Returns a case of a proof that differs from a valid proof. */
  const changed = (name: string, change: ProofChange, verdict: VectorCase["verdict"]): VectorCase =>
    presented(name, [proof(name, change)], verdict, bound(change.key));

  return { bound, signed, headerOf, payloadOf, proof, presented, changed, forge };
}

export type Prover = ReturnType<typeof createProver>;
