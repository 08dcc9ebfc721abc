/** Cases about the key of a proof: its form, its size and its algorithm. */
import { raw, type VectorCase } from "./format.ts";
import {
  CLIENT,
  type ClientKey,
  ED25519_CLIENT,
  EDWARDS_CLIENT,
  OTHER_CLIENT,
  type Prover,
  RSA_CLIENT,
} from "./prover.ts";
import { exponent, fakeModulus } from "./rsa-cases.ts";

type Verdict = VectorCase["verdict"];
const show = (value: unknown) => JSON.stringify(value) ?? "absent";
const bytesOf = (text = "") => Buffer.from(text, "base64url");

export function proofKeyCases(prover: Prover): VectorCase[] {
  const { changed } = prover;
  const jwkOf = (name: string, key: ClientKey, members: object, verdict: Verdict) =>
    changed(`the key: ${name}`, { key, header: { jwk: { ...key.jwk, ...members } } }, verdict);
  const ec = (name: string, members: object, verdict: Verdict = "proof_bad_key") =>
    jwkOf(name, CLIENT, members, verdict);
  const rsa = (name: string, members: object, verdict: Verdict = "proof_bad_key") =>
    jwkOf(name, RSA_CLIENT, members, verdict);
  const { x = "", y = "" } = CLIENT.jwk;
  return [
    ...[CLIENT, RSA_CLIENT, EDWARDS_CLIENT, ED25519_CLIENT].map((key) => changed(`of ${key.alg}`, { key }, "accepted")),
    ...[null, true, 0, "", "x", [], {}, [CLIENT.jwk], undefined].map((jwk) =>
      changed(`the key: ${show(jwk)}`, { header: { jwk } }, "proof_bad_key"),
    ),
    ...["d", "p", "q", "dp", "dq", "qi", "oth", "k"].map((name) => ec(`with the member ${name}`, { [name]: null })),
    ec("with further members", { kid: "1", use: "enc", key_ops: [], x5c: null }, "accepted"),
    ec("with its algorithm", { alg: "ES256" }, "accepted"),
    ...["ES384", "EdDSA", null, ""].map((alg) => ec(`with alg ${show(alg)}`, { alg })),
    ...["RSA", "ec", null, undefined].map((kty) => ec(`with kty ${show(kty)}`, { kty })),
    ...["P-384", "p-256", "Ed25519", null, undefined].map((crv) => ec(`with crv ${show(crv)}`, { crv })),
    ...[null, 1, "", undefined, `${x}=`, `${x}A`, x.slice(1), raw(bytesOf(x).subarray(1)), `${x.slice(0, -1)}B`].map(
      (value) => ec(`with x ${show(value)}`, { x: value }),
    ),
    ec("not on its curve", { x: y, y: x }),
    ec("the point at zero", { x: raw(Buffer.alloc(32)), y: raw(Buffer.alloc(32)) }),
    ec("a coordinate beyond the prime", { x: raw(Buffer.alloc(32, 255)) }),
    ec("another one", OTHER_CLIENT.jwk, "proof_forged"),
    jwkOf("Ed25519 with the name of the other", ED25519_CLIENT, { alg: "EdDSA" }, "proof_bad_key"),
    jwkOf("Ed25519 as EC", EDWARDS_CLIENT, { kty: "EC" }, "proof_bad_key"),
    jwkOf("X25519", EDWARDS_CLIENT, { crv: "X25519" }, "proof_bad_key"),
    jwkOf("Ed25519 of 31 bytes", EDWARDS_CLIENT, { x: raw(Buffer.alloc(31, 1)) }, "proof_bad_key"),
    jwkOf("Ed25519 with a point of small order", EDWARDS_CLIENT, { x: raw(Buffer.alloc(32)) }, "proof_forged"),
    jwkOf("Ed25519 beyond the prime", EDWARDS_CLIENT, { x: raw(Buffer.alloc(32, 255)) }, "proof_forged"),
    ...[1024, 2040, 2047, 4097, 4104].map((bits) => rsa(`RSA of ${bits} bits`, { n: fakeModulus(bits) })),
    ...[2048, 3072, 4095, 4096].map((bits) =>
      rsa(`RSA of ${bits} bits, another`, { n: fakeModulus(bits) }, "proof_forged"),
    ),
    ...[1, 3, 17, 65_535, 65_538, 65_539, 2 ** 31 - 1, 2 ** 32 - 1].map((e) =>
      rsa(`RSA with e ${e}`, { e: exponent(e) }),
    ),
    rsa("RSA with e of 5 bytes", { e: raw(Buffer.from([1, 0, 0, 0, 1])) }),
    rsa("RSA with a leading zero in e", { e: raw(Buffer.from([0, 1, 0, 1])) }),
    rsa("RSA with a leading zero in n", { n: raw(Buffer.concat([Buffer.alloc(1), bytesOf(RSA_CLIENT.jwk.n)])) }),
    rsa("RSA with an even modulus", {
      n: raw(Buffer.concat([bytesOf(RSA_CLIENT.jwk.n).subarray(0, 255), Buffer.alloc(1)])),
    }),
    ...[null, 65_537, "", "AQAB=", "AQA", undefined].map((e) => rsa(`RSA with e ${show(e)}`, { e })),
    ...[null, "", undefined].map((n) => rsa(`RSA with n ${show(n)}`, { n })),
    ...["none", "HS256", "RS512", "PS256", "ES384", "es256", "", null, 1, ["ES256"], undefined].map((alg) =>
      changed(`alg ${show(alg)}`, { header: { alg } }, "proof_wrong_algorithm"),
    ),
    ...["RS256", "EdDSA", "Ed25519"].map((alg) =>
      changed(`alg ${alg} with the key of another`, { header: { alg } }, "proof_bad_key"),
    ),
    ...signatureCases(prover),
  ];
}

const P256_ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;
const ED25519_ORDER = 2n ** 252n + 27742317777372353535851937790883648493n;

function signatureCases({ proof, presented, changed, bound }: Prover): VectorCase[] {
  const toBytes = (value: bigint) => Buffer.from(value.toString(16).padStart(64, "0"), "hex");
  const split = (text: string) => {
    const end = text.lastIndexOf(".") + 1;
    return { input: text.slice(0, end), bytes: bytesOf(text.slice(end)) };
  };
  const name = "a signature to be changed";
  const good = proof(name);
  const { input, bytes } = split(good);
  const [r, s] = [bytes.subarray(0, 32), bytes.subarray(32)];
  const mirrored = input + raw(Buffer.concat([r, toBytes(P256_ORDER - BigInt(`0x${s.toString("hex")}`))]));
  const edwards = split(proof("an EdDSA signature to be changed", { key: EDWARDS_CLIENT }));
  const edS = BigInt(`0x${Buffer.from(edwards.bytes.subarray(32)).reverse().toString("hex")}`) + ED25519_ORDER;
  const beyond = raw(Buffer.concat([edwards.bytes.subarray(0, 32), toBytes(edS).reverse()]));
  const rsa = split(proof("an RSA signature to be changed", { key: RSA_CLIENT }));
  const der = Buffer.concat([Buffer.from("30440220", "hex"), r, Buffer.from("0220", "hex"), s]);
  return [
    presented(name, [good], "accepted"),
    presented("the mirrored signature is the same proof", [good, mirrored], "proof_replayed"),
    presented("the null signature", [input + raw(Buffer.alloc(64))], "proof_forged"),
    presented("a signature in DER", [input + raw(der)], "proof_forged"),
    ...[1, 63, 65, 128].map((length) =>
      presented(
        `a signature of ${length} bytes`,
        [input + raw(Buffer.concat([bytes, bytes]).subarray(0, length))],
        "proof_forged",
      ),
    ),
    presented(
      "an EdDSA signature with S beyond the order",
      [edwards.input + beyond],
      "proof_forged",
      bound(EDWARDS_CLIENT),
    ),
    ...[255, 257].map((length) => {
      const signature = raw(Buffer.concat([rsa.bytes, Buffer.alloc(1)]).subarray(0, length));
      return presented(
        `an RSA signature of ${length} bytes`,
        [rsa.input + signature],
        "proof_forged",
        bound(RSA_CLIENT),
      );
    }),
    changed("signed by another key", { by: OTHER_CLIENT }, "proof_forged"),
    changed("an EC key, signed by RSA", { by: RSA_CLIENT }, "proof_forged"),
  ];
}
