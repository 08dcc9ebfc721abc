/** Invalid texts that look like tokens of the service. */
import { createHmac, randomBytes } from "node:crypto";

/** The offset of each part of a refresh token, in bytes. */
const PARTS = { version: 0, "key id": 1, "session id": 5, generation: 22, nonce: 26, "time of issue": 34, MAC: 40 };

/** Returns invalid variants of a refresh token. Each must be refused without reading the store. */
export function badRefreshTokens(good: string): readonly (readonly [what: string, text: string])[] {
  const bytes = Buffer.from(good, "base64url");
  const flipped = (at: number) => {
    const copy = Buffer.from(bytes);
    copy.writeUInt8((copy.at(at) ?? 0) ^ 1, at);
    return copy.toString("base64url");
  };
  const foreign = Buffer.from(bytes);
  createHmac("sha256", randomBytes(32)).update(foreign.subarray(0, PARTS.MAC)).digest().copy(foreign, PARTS.MAC);
  const unknownKey = Buffer.from(bytes);
  randomBytes(4).copy(unknownKey, PARTS["key id"]);
  return [
    ["empty", ""],
    ["a word", "token"],
    ["truncated by one character", good.slice(0, -1)],
    ["truncated by four characters", good.slice(0, -4)],
    ["without its MAC", bytes.subarray(0, PARTS.MAC).toString("base64url")],
    ["longer by a character", `${good}A`],
    ["padded", `${good}====`],
    ["quoted", `"${good}"`],
    ["percent-encoded", `%${good.charCodeAt(0).toString(16)}${good.slice(1)}`],
    ["in hexadecimal", bytes.toString("hex")],
    [
      "in the other base64 alphabet",
      `${good.slice(0, 40).replaceAll("-", "+")}+/${good.slice(42).replaceAll("_", "/")}`,
    ],
    ["twice", good + good],
    ...Object.entries(PARTS).map(([part, at]) => [`with another ${part}`, flipped(at)] as const),
    ["with another last byte", flipped(bytes.length - 1)],
    ["under a foreign key", foreign.toString("base64url")],
    ["under a key that is not in the ring", unknownKey.toString("base64url")],
  ];
}

const BASE64URL = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
/** The order of the curve P-256 (SEC 2 section 2.4.2). */
const N = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;

/**
 * Returns other encodings of an access token. The signature of the last one is valid: ECDSA accepts `n - s` in place of `s`, so anybody can
 * compute it from the original.
 */
export function malleated(token: string): readonly (readonly [what: string, text: string])[] {
  const [header, payload, signature] = token.split(".") as [string, string, string];
  const last = BASE64URL.indexOf(signature.at(-1) as string);
  const bytes = Buffer.from(signature, "base64url");
  const s = N - BigInt(`0x${bytes.toString("hex", 32)}`);
  const mirrored = Buffer.concat([bytes.subarray(0, 32), Buffer.from(s.toString(16).padStart(64, "0"), "hex")]);
  return [
    ["as it was", token],
    ["with another last character of the same bytes", token.slice(0, -1) + BASE64URL[last + 1]],
    ["padded", `${token}==`],
    ["with padded segments", `${header}=.${payload}=.${signature}==`],
    ["in the other base64 alphabet", `${header}.${payload}.${bytes.toString("base64").replace(/=+$/, "")}`],
    ["with a fourth segment", `${token}.`],
    ["with n - s", `${header}.${payload}.${mirrored.toString("base64url")}`],
  ];
}

/** Returns forged access tokens, made from a valid one without the signing key. */
export function forgedAccessTokens(token: string): readonly (readonly [what: string, text: string])[] {
  const [header, payload, signature] = token.split(".") as [string, string, string];
  const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const claims = JSON.parse(Buffer.from(payload, "base64url").toString());
  const { kid } = JSON.parse(Buffer.from(header, "base64url").toString());
  const hmac = `${encode({ typ: "at+jwt", alg: "HS256", kid })}.${payload}`;
  return [
    ["empty", ""],
    ["a word", "token"],
    ["with another subject", `${header}.${encode({ ...claims, sub: "root" })}.${signature}`],
    ["with another expiry", `${header}.${encode({ ...claims, exp: claims.exp + 3600 })}.${signature}`],
    ["without a signature", `${header}.${payload}.`],
    ["with alg none", `${encode({ typ: "at+jwt", alg: "none", kid })}.${payload}.`],
    ["with alg HS256", `${hmac}.${createHmac("sha256", kid).update(hmac).digest("base64url")}`],
    ["of another kid", `${encode({ typ: "at+jwt", alg: "ES256", kid: "other" })}.${payload}.${signature}`],
    ["of another type", `${encode({ typ: "JWT", alg: "ES256", kid })}.${payload}.${signature}`],
    ["with a zero signature", `${header}.${payload}.${Buffer.alloc(64).toString("base64url")}`],
    ["with half a signature", `${header}.${payload}.${signature.slice(0, 43)}`],
    ["too long", `${token}${"A".repeat(8000)}`],
  ];
}
