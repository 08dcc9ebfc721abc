import { createPublicKey, generateKeyPairSync, type KeyObject } from "node:crypto";
import fc from "fast-check";
import { type CompactJWSHeaderParameters, CompactSign, calculateJwkThumbprint, compactVerify, type JWK } from "jose";
import { describe, expect, test } from "vitest";
import type { DeviceKey } from "../../../src/service/session/devices/key.ts";
import type { DeviceProofExpectation } from "../../../src/service/session/devices/ports.ts";
import { keyFromBytes, verifyDeviceProof } from "../../../src/service/tokens/device-proof.ts";

type Algorithm = DeviceKey["algorithm"];
type Device = { readonly algorithm: Algorithm; readonly privateKey: KeyObject; readonly jwk: JWK };

const REGISTRATION = { kind: "registration" } as const;
const PAYLOAD = { jti: "challenge-1" };

const ecDevice = (): Device => device("ES256", generateKeyPairSync("ec", { namedCurve: "P-256" }));
const rsaDevice = (bits: number, publicExponent = 0x10001): Device =>
  device("RS256", generateKeyPairSync("rsa", { modulusLength: bits, publicExponent }));

function device(
  algorithm: Algorithm,
  { publicKey, privateKey }: { publicKey: KeyObject; privateKey: KeyObject },
): Device {
  return { algorithm, privateKey, jwk: publicKey.export({ format: "jwk" }) as JWK };
}

const devices = { ES256: ecDevice(), RS256: rsaDevice(2048) };

type Parts = { readonly header?: Record<string, unknown>; readonly payload?: unknown };

/** Returns a proof like that of a browser, made with jose, with the changes of the test. */
function proofOf({ algorithm, privateKey, jwk }: Device, { header = {}, payload = PAYLOAD }: Parts = {}) {
  const members = { alg: algorithm, typ: "dbsc+jwt", jwk, ...header };
  const text = typeof payload === "string" ? payload : JSON.stringify(payload);
  return new CompactSign(Buffer.from(text))
    .setProtectedHeader(members as CompactJWSHeaderParameters)
    .sign(privateKey, { crit: { b64: true } });
}

/** Returns a proof with any text as its header, signed by the device's key without a library. */
async function rawProof(header: string, signedBy: Device, payload = JSON.stringify(PAYLOAD)) {
  const { sign } = await import("node:crypto");
  const input = `${Buffer.from(header).toString("base64url")}.${Buffer.from(payload).toString("base64url")}`;
  const signature = sign("sha256", Buffer.from(input), { key: signedBy.privateKey, dsaEncoding: "ieee-p1363" });
  return `${input}.${signature.toString("base64url")}`;
}

async function registered(of: Device): Promise<DeviceKey> {
  const result = verifyDeviceProof(await proofOf(of), REGISTRATION);
  if (!result.ok) throw new Error(result.reason);
  return result.key;
}

const reasonOf = (jwt: string, expected: DeviceProofExpectation = REGISTRATION) => {
  const result = verifyDeviceProof(jwt, expected);
  return result.ok ? "ok" : result.reason;
};

describe.each(["ES256", "RS256"] as const)("a proof under %s", (algorithm) => {
  const own = devices[algorithm];

  test("registers the key that it brings", async () => {
    const result = verifyDeviceProof(await proofOf(own), REGISTRATION);
    expect(result).toMatchObject({ ok: true, challenge: "challenge-1", key: { algorithm } });
    if (!result.ok) return;
    expect(Buffer.from(result.key.thumbprint).toString("base64url")).toBe(await calculateJwkThumbprint(own.jwk));
    expect(result.key.bytes.length === 64).toBe(algorithm === "ES256");
    expect(keyFromBytes(result.key.bytes)?.key).toEqual(result.key);
    expect(keyFromBytes(result.key.bytes)?.object.export({ format: "jwk" })).toEqual(own.jwk);
  });

  test("renews without a key in it, and with the session's own", async () => {
    const expected = { kind: "renewal", key: await registered(own) } as const;
    expect(verifyDeviceProof(await proofOf(own, { header: { jwk: undefined } }), expected)).toMatchObject({ ok: true });
    expect(verifyDeviceProof(await proofOf(own), expected)).toMatchObject({ ok: true, key: expected.key });
  });

  test("does not renew by another key, named or not", async () => {
    const other = algorithm === "ES256" ? ecDevice() : rsaDevice(2048);
    const expected = { kind: "renewal", key: await registered(own) } as const;
    expect(reasonOf(await proofOf(other), expected)).toBe("other_key");
    expect(reasonOf(await proofOf(other, { header: { jwk: undefined } }), expected)).toBe("forged");
    expect(reasonOf(await proofOf(other, { header: { jwk: own.jwk } }), expected)).toBe("forged");
    expect(reasonOf(await proofOf(own, { header: { jwk: null } }), expected)).toBe("other_key");
  });

  test("may be a quoted string, and only a whole one", async () => {
    const jwt = await proofOf(own);
    expect(verifyDeviceProof(`"${jwt}"`, REGISTRATION)).toEqual(verifyDeviceProof(jwt, REGISTRATION));
    const around = [`"${jwt}`, `${jwt}"`, `""${jwt}""`, `'${jwt}'`, ` ${jwt}`, `${jwt}\n`, `"${jwt}";a`, `a"${jwt}"`];
    for (const text of [...around, `${jwt}, ${jwt}`, ""]) {
      expect(reasonOf(text)).toBe("malformed");
    }
  });

  test("is refused with any one character changed, by us and by jose", async () => {
    const jwt = await proofOf(own);
    const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.";
    const change = fc.record({ at: fc.nat(jwt.length - 1), to: fc.constantFrom(...alphabet) });
    const jwk = createPublicKey({ key: own.jwk as never, format: "jwk" });
    await fc.assert(
      fc.asyncProperty(change, async ({ at, to }) => {
        fc.pre(jwt[at] !== to);
        const changed = jwt.slice(0, at) + to + jwt.slice(at + 1);
        expect(reasonOf(changed)).not.toBe("ok");
        // jose ignores the unused bits of the last character, so changes of that character are not compared.
        if (at < jwt.length - 1) await expect(compactVerify(changed, jwk)).rejects.toThrow();
      }),
      { numRuns: 300 },
    );
  });

  test("is refused cut short anywhere", async () => {
    const jwt = await proofOf(own);
    for (let length = 0; length < jwt.length; length += 1) expect(reasonOf(jwt.slice(0, length))).not.toBe("ok");
  });
});

describe("the header of a proof", () => {
  const own = devices.ES256;

  test("has the type dbsc+jwt and no other", async () => {
    for (const typ of [
      "jwt",
      "JWT",
      "at+jwt",
      "DBSC+JWT",
      "application/dbsc+jwt",
      "dpop+jwt",
      "",
      null,
      undefined,
      1,
    ]) {
      expect([typ, reasonOf(await rawProof(JSON.stringify({ alg: "ES256", typ, jwk: own.jwk }), own))]).toEqual([
        typ,
        "wrong_type",
      ]);
    }
  });

  test("has no algorithm but ES256 and RS256", async () => {
    const algorithms = [
      "none",
      "None",
      "HS256",
      "ES384",
      "PS256",
      "EdDSA",
      "RS512",
      "es256",
      "",
      null,
      undefined,
      ["ES256"],
    ];
    for (const alg of algorithms) {
      const jwt = await rawProof(JSON.stringify({ alg, typ: "dbsc+jwt", jwk: own.jwk }), own);
      expect([alg, reasonOf(jwt)]).toEqual([alg, "wrong_algorithm"]);
    }
  });

  test("cannot make one key serve the other algorithm", async () => {
    const asRsa = JSON.stringify({ alg: "RS256", typ: "dbsc+jwt", jwk: own.jwk });
    expect(reasonOf(await rawProof(asRsa, own))).toBe("bad_key");
    const asEc = JSON.stringify({ alg: "ES256", typ: "dbsc+jwt", jwk: devices.RS256.jwk });
    expect(reasonOf(await rawProof(asEc, devices.RS256))).toBe("bad_key");
    const named = JSON.stringify({ alg: "ES256", typ: "dbsc+jwt", jwk: { ...own.jwk, alg: "RS256" } });
    expect(reasonOf(await rawProof(named, own))).toBe("bad_key");
    const expected = { kind: "renewal", key: await registered(own) } as const;
    expect(reasonOf(await proofOf(devices.RS256, { header: { jwk: undefined } }), expected)).toBe("wrong_algorithm");
  });

  test("cannot make a public key serve as a secret", async () => {
    const { createHmac } = await import("node:crypto");
    const spki = createPublicKey({ key: own.jwk as never, format: "jwk" }).export({ format: "pem", type: "spki" });
    const header = Buffer.from(JSON.stringify({ alg: "HS256", typ: "dbsc+jwt" })).toString("base64url");
    const input = `${header}.${Buffer.from(JSON.stringify(PAYLOAD)).toString("base64url")}`;
    const jwt = `${input}.${createHmac("sha256", spki).update(input).digest("base64url")}`;
    expect(reasonOf(jwt, { kind: "renewal", key: await registered(own) })).toBe("wrong_algorithm");
  });

  test("has no extension that would change what is signed", async () => {
    const base = { alg: "ES256", typ: "dbsc+jwt", jwk: own.jwk };
    for (const more of [
      { crit: ["b64"], b64: false },
      { crit: ["exp"] },
      { crit: [] },
      { b64: true },
      { b64: false },
    ]) {
      expect(reasonOf(await rawProof(JSON.stringify({ ...base, ...more }), own))).toBe("malformed");
    }
  });

  test("names each member once, and is a JSON object", async () => {
    const jwk = JSON.stringify(own.jwk);
    expect(reasonOf(await rawProof(`{"alg":"ES256","typ":"dbsc+jwt","jwk":${jwk}}`, own))).toBe("ok");
    expect(reasonOf(await rawProof(`{"alg":"none","alg":"ES256","typ":"dbsc+jwt","jwk":${jwk}}`, own))).toBe(
      "malformed",
    );
    expect(reasonOf(await rawProof(`{"alg":"ES256","typ":"dbsc+jwt","jwk":${jwk},"jwk":${jwk}}`, own))).toBe(
      "malformed",
    );
    for (const text of ["[]", "null", '"x"', "1", "{", "", `\ufeff{"alg":"ES256","typ":"dbsc+jwt","jwk":${jwk}}`]) {
      expect(["malformed", "wrong_type"]).toContain(reasonOf(await rawProof(text, own)));
    }
  });
});

describe("the key of a registration", () => {
  const own = devices.ES256;
  const withKey = (jwk: unknown, of: Device = own) =>
    rawProof(JSON.stringify({ alg: of.algorithm, typ: "dbsc+jwt", jwk }), of).then((jwt) => reasonOf(jwt));

  test("is there", async () => {
    for (const jwk of [undefined, null, "", [], {}, [own.jwk], 7]) expect(await withKey(jwk)).toBe("bad_key");
  });

  test("is a point on P-256, each coordinate in 32 bytes", async () => {
    const { x = "", y = "" } = own.jwk;
    const long = Buffer.concat([Buffer.alloc(1), Buffer.from(x, "base64url")]).toString("base64url");
    const zero = Buffer.alloc(32).toString("base64url");
    const offCurve = Buffer.from(y, "base64url");
    offCurve[31] = (offCurve[31] ?? 0) ^ 1;
    const bad: JWK[] = [
      { ...own.jwk, y: offCurve.toString("base64url") },
      { ...own.jwk, x: y, y: x },
      { ...own.jwk, x: zero, y: zero },
      { ...own.jwk, x: long },
      { ...own.jwk, x: x.slice(0, -2) },
      { ...own.jwk, x: `${x}=` },
      { ...own.jwk, x: Buffer.alloc(32, 0xff).toString("base64url") },
      { ...own.jwk, crv: "P-384" },
      { ...own.jwk, crv: "secp256k1" },
      { ...own.jwk, kty: "OKP" },
      { kty: "EC", crv: "P-256", x },
    ];
    for (const jwk of bad) expect([jwk, await withKey(jwk)]).toEqual([jwk, "bad_key"]);
  });

  test("is not of another curve", async () => {
    for (const namedCurve of ["P-384", "P-521", "secp256k1"]) {
      const pair = device("ES256", generateKeyPairSync("ec", { namedCurve }));
      expect(await withKey(pair.jwk, pair)).toBe("bad_key");
    }
  });

  test("has no private member", async () => {
    expect(await withKey(own.privateKey.export({ format: "jwk" }))).toBe("bad_key");
    const rsa = devices.RS256;
    expect(await withKey(rsa.privateKey.export({ format: "jwk" }), rsa)).toBe("bad_key");
    for (const name of ["d", "p", "q", "dp", "dq", "qi", "oth", "k"]) {
      expect(await withKey({ ...own.jwk, [name]: null })).toBe("bad_key");
    }
  });

  test("has from 2,048 to 4,096 bits under RS256", async () => {
    for (const [bits, expected] of [
      [1024, "bad_key"],
      [2040, "bad_key"],
      [3072, "ok"],
      [4104, "bad_key"],
    ] as const) {
      const rsa = rsaDevice(bits);
      expect([bits, await withKey(rsa.jwk, rsa)]).toEqual([bits, expected]);
    }
  });

  test("of 4,096 bits fits, with a quoted value and a long audience", async () => {
    const payload = { ...PAYLOAD, aud: `https://auth.example/${"a".repeat(300)}`, authorization: "b".repeat(100) };
    const jwt = await proofOf(rsaDevice(4096), { payload });
    expect(reasonOf(`"${jwt}"`)).toBe("ok");
  });

  test("has a sound modulus and exponent in canonical encoding", async () => {
    const rsa = devices.RS256;
    const modulus = Buffer.from(rsa.jwk.n ?? "", "base64url");
    const even = Buffer.from(modulus);
    even[even.length - 1] = (even.at(-1) ?? 0) & 0xfe;
    const bad: JWK[] = [
      ...["Ag", "Aw", "AQ", "AAEAAQ", "AQAA", "", "AQAAAAE", "AQAB="].map((e) => ({ ...rsa.jwk, e })),
      { ...rsa.jwk, n: Buffer.concat([Buffer.alloc(1), modulus]).toString("base64url") },
      { ...rsa.jwk, n: even.toString("base64url") },
      { ...rsa.jwk, n: "" },
      { kty: "RSA", n: rsa.jwk.n ?? "" },
    ];
    for (const jwk of bad) expect([jwk.e, await withKey(jwk, rsa)]).toEqual([jwk.e, "bad_key"]);
    const small = rsaDevice(2048, 3);
    expect(await withKey(small.jwk, small)).toBe("bad_key");
  });

  test("is read from what a session keeps only as it was written", async () => {
    const { bytes } = await registered(devices.RS256);
    expect(keyFromBytes(Uint8Array.of(...bytes, 0))).toBeUndefined();
    expect(keyFromBytes(bytes.slice(1))).toBeUndefined();
    for (const length of [0, 32, 63, 64, 65, 294]) expect(keyFromBytes(new Uint8Array(length))).toBeUndefined();
    const proof = await proofOf(devices.RS256);
    const key: DeviceKey = { algorithm: "RS256", bytes: new Uint8Array(294), thumbprint: new Uint8Array(32) };
    expect(() => verifyDeviceProof(proof, { kind: "renewal", key })).toThrow("device key cannot be imported");
    const other = createPublicKey({ key: devices.ES256.jwk as never, format: "jwk" });
    expect(keyFromBytes(other.export({ format: "der", type: "spki" }))).toBeUndefined();
  });
});

describe("the rest of a proof", () => {
  const own = devices.ES256;

  test("has a challenge, once, as text", async () => {
    const twice = '{"jti":"a","jti":"b"}';
    for (const payload of [{}, { jti: 1 }, { jti: null }, { jti: ["a"] }, [], "null", "x", "", twice]) {
      expect([payload, reasonOf(await proofOf(own, { payload }))]).toEqual([payload, "malformed"]);
    }
  });

  test("may have other claims, of any form", async () => {
    for (const more of [
      { aud: "https://auth.example" },
      { aud: ["a"] },
      { authorization: 1 },
      { iat: "1", extra: {} },
    ]) {
      expect(reasonOf(await proofOf(own, { payload: { ...PAYLOAD, ...more } }))).toBe("ok");
    }
  });

  test("is refused over 4,096 characters", async () => {
    expect(reasonOf(await proofOf(own, { payload: { ...PAYLOAD, pad: "x".repeat(4096) } }))).toBe("malformed");
  });

  test("has a signature in its one form", async () => {
    const jwt = await proofOf(own);
    const [input, signature] = [jwt.slice(0, jwt.lastIndexOf(".")), jwt.slice(jwt.lastIndexOf(".") + 1)];
    const { sign } = await import("node:crypto");
    const der = sign("sha256", Buffer.from(input), own.privateKey).toString("base64url");
    expect(reasonOf(`${input}.${der}`)).toBe("forged");
    const zero = Buffer.alloc(64).toString("base64url");
    expect(reasonOf(`${input}.${zero}`)).toBe("forged");
    const spare = "AQgw".includes(signature.at(-1) ?? "")
      ? String.fromCharCode((signature.at(-1) ?? "A").charCodeAt(0) + 1)
      : "";
    expect(reasonOf(`${input}.${signature.slice(0, -1)}${spare}`)).toBe("malformed");
  });

  test("never throws, whatever the text", () => {
    const segment = fc.oneof(
      fc.base64String(),
      fc.string(),
      fc.json().map((text) => Buffer.from(text).toString("base64url")),
    );
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.tuple(segment, segment, segment).map((parts) => parts.join(".")),
        ),
        (text) => {
          expect(reasonOf(text)).not.toBe("ok");
        },
      ),
    );
  });
});
