/** Cases about the key set: which keys are used, and when the set as a whole is refused. */
import { type Forge, NOW_MS, type VectorCase } from "./format.ts";
import { EDWARDS, MAIN, NEXT, publicJwk } from "./keys.ts";

const HOUR_MS = 3_600_000;
/** A point that is not on the curve. */
const OFF_CURVE = { x: "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA" };

export function keyCases({ token }: Forge): VectorCase[] {
  const good = token();
  const jwk = publicJwk(MAIN);
  const next = publicJwk(NEXT);
  const of = (name: string, keys: unknown, verdict: VectorCase["verdict"], text = good): VectorCase => ({
    ...{ name: `the key set: ${name}`, token: text, nowMs: NOW_MS, keys, verdict },
  });
  /** Returns a case whose key set has a changed key and a valid one, so that the set as a whole can be read. */
  const withKey = (name: string, changes: object, verdict: VectorCase["verdict"]) =>
    of(name, { keys: [next, { ...jwk, ...changes }] }, verdict);
  const readBefore = (ms: number, verdict: VectorCase["verdict"]): VectorCase => ({
    ...{ name: `the key set was read ${ms} ms ago`, token: good, nowMs: NOW_MS, keysReadAtMs: NOW_MS - ms, verdict },
  });
  return [
    withKey("without alg", { alg: undefined }, "accepted"),
    withKey("alg null", { alg: null }, "accepted"),
    withKey("without use", { use: undefined }, "accepted"),
    withKey("key_ops verify", { key_ops: ["verify"] }, "accepted"),
    withKey("key_ops sign and verify", { key_ops: ["sign", "verify"] }, "accepted"),
    withKey("with a private member", { d: "AAAA" }, "accepted"),
    withKey("with other members", { x5t: "AAAA", ext: true, y2: [] }, "accepted"),
    ...["enc", "", null, ["sig"], 1].map((use) => withKey(`use ${JSON.stringify(use)}`, { use }, "unknown_key")),
    ...[["sign"], [], null, "verify", {}].map((key_ops) =>
      withKey(`key_ops ${JSON.stringify(key_ops)}`, { key_ops }, "unknown_key"),
    ),
    withKey("for access tokens and others", { token_types: ["secevent+jwt", "at+jwt"] }, "accepted"),
    ...[["secevent+jwt", "logout+jwt"], [], null, "at+jwt", {}].map((token_types) =>
      withKey(`token_types ${JSON.stringify(token_types)}`, { token_types }, "unknown_key"),
    ),
    ...["ES384", "EdDSA", "es256", "", 1, ["ES256"]].map((alg) =>
      withKey(`alg ${JSON.stringify(alg)}`, { alg }, "unknown_key"),
    ),
    ...["OKP", "RSA", "oct", "ec", null, undefined].map((kty) => withKey(`kty ${kty}`, { kty }, "unknown_key")),
    ...["P-384", "secp256k1", "Ed25519", "p-256", null, undefined].map((crv) =>
      withKey(`crv ${crv}`, { crv }, "unknown_key"),
    ),
    ...[null, 1, undefined, [MAIN.kid]].map((kid) => withKey(`kid ${JSON.stringify(kid)}`, { kid }, "unknown_key")),
    withKey("a point off the curve", OFF_CURVE, "unknown_key"),
    withKey("a coordinate that is too short", { x: "AAAA" }, "unknown_key"),
    withKey("a coordinate with padding", { x: `${jwk.x}=` }, "unknown_key"),
    withKey("a coordinate with spare bits", { x: `${jwk.x?.slice(0, -1)}R` }, "unknown_key"),
    withKey("a coordinate that is a number", { x: 1 }, "unknown_key"),
    withKey("a coordinate that is missing", { y: undefined }, "unknown_key"),
    withKey("another key under the kid", { ...next, kid: MAIN.kid }, "forged"),
    of("the first of two under one kid counts", { keys: [jwk, { ...next, kid: MAIN.kid }] }, "accepted"),
    of("the second of two under one kid does not count", { keys: [{ ...next, kid: MAIN.kid }, jwk] }, "forged"),
    of("members that are no keys", { keys: [null, 1, "key", [], {}, jwk] }, "accepted"),
    of("other members beside the keys", { version: 2, keys: [jwk] }, "accepted"),
    of("without the key", { keys: [next] }, "unknown_key"),
    of("no keys", { keys: [] }, "unavailable"),
    of(
      "no usable key",
      {
        keys: [
          { ...jwk, use: "enc" },
          { kty: "RSA", kid: MAIN.kid, n: "AQAB", e: "AQAB" },
        ],
      },
      "unavailable",
    ),
    of("no list", { keys: { [MAIN.kid]: jwk } }, "unavailable"),
    of("no object", [jwk], "unavailable"),
    of("null", { keys: null }, "unavailable"),
    of("a hundred keys", { keys: [...Array(99).fill(next), jwk] }, "accepted"),
    of("more than a hundred keys", { keys: [jwk, ...Array(100).fill(next)] }, "unavailable"),
    of("it cannot be read", null, "unavailable"),
    of("it cannot be read, and the token is malformed", null, "malformed", good.slice(1)),
    of("it cannot be read, and the header names none", null, "wrong_algorithm", token({ alg: "none" })),
    of(
      "with a key of Ed25519 alone",
      { keys: [publicJwk(EDWARDS)] },
      "accepted",
      token({ alg: "EdDSA", kid: EDWARDS.kid }, {}, EDWARDS),
    ),
    readBefore(0, "accepted"),
    readBefore(HOUR_MS, "accepted"),
    readBefore(HOUR_MS + 1, "unavailable"),
  ];
}
