import { generateKeyPairSync } from "node:crypto";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { calculateJwkThumbprint, createLocalJWKSet, type JWK, jwtVerify } from "jose";
import { describe, expect, onTestFinished, test } from "vitest";
import {
  type EventKeys,
  EventKeysFault,
  loadEventKeys,
  parseEventKeys,
} from "../../../src/service/tokens/event-keys.ts";
import { pemOf } from "../../support/rsa-key.ts";

const [first, second] = [pemOf("pkcs8"), pemOf("pkcs1")];

const jwksOf = ({ jwks }: EventKeys) => ({ keys: [...jwks] as JWK[] });

test("jose verifies what the first key signs, by RS256", async () => {
  const keys = parseEventKeys(first + second);
  const token = await keys.sign("secevent+jwt", { iss: "https://auth.example", jti: "1" });
  const { payload, protectedHeader } = await jwtVerify(token, createLocalJWKSet(jwksOf(keys)));
  expect(payload).toEqual({ iss: "https://auth.example", jti: "1" });
  expect(protectedHeader).toEqual({ typ: "secevent+jwt", alg: "RS256", kid: keys.jwks[0]?.kid });
  const others = createLocalJWKSet(jwksOf(parseEventKeys(second)));
  await expect(jwtVerify(token, others)).rejects.toMatchObject({ code: "ERR_JWKS_NO_MATCHING_KEY" });
});

test("all keys are published: without their secrets, by their thumbprints", async () => {
  const { jwks } = parseEventKeys(`Bag Attributes\n${second}${first}`);
  expect(jwks).toHaveLength(2);
  for (const jwk of jwks) {
    expect(Object.keys(jwk).sort()).toEqual(["alg", "e", "kid", "kty", "n", "token_types", "use"]);
    expect(jwk).toMatchObject({ alg: "RS256", use: "sig", kty: "RSA" });
    expect(jwk.kid).toBe(await calculateJwkThumbprint(jwk as JWK));
  }
});

const NOT_ACCEPTED = "holds a key that is not RSA of 2048 to 4096 bits with the exponent 65537";

test("four keys are accepted", () => {
  expect(parseEventKeys([first, second, pemOf("pkcs8"), pemOf("pkcs8")].join("")).jwks).toHaveLength(4);
});

test("a file is read if no other user can read it", async () => {
  const directory = mkdtempSync(join(tmpdir(), "event-keys-"));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const path = join(directory, "events.pem");
  writeFileSync(path, first, { mode: 0o600 });
  for (const reader of ["service", "operator"] as const) {
    expect((await loadEventKeys(path, reader)).current.jwks).toEqual(parseEventKeys(first).jwks);
  }
  chmodSync(path, 0o644);
  await expect(loadEventKeys(path)).rejects.toThrow(/chmod 600/);
});

describe("a file is refused without a word of what is in it", () => {
  const encrypted = generateKeyPairSync("rsa", {
    modulusLength: 2048,
    publicKeyEncoding: { type: "spki", format: "pem" },
    privateKeyEncoding: { type: "pkcs8", format: "pem", cipher: "aes-256-cbc", passphrase: "x" },
  });
  const elliptic = generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey;
  const pss = generateKeyPairSync("rsa-pss", { modulusLength: 2048 }).privateKey;
  test.each([
    ["nothing", "", "holds no private key in PEM"],
    ["a public key", encrypted.publicKey, "holds no private key in PEM"],
    ["an encrypted key", encrypted.privateKey, "holds a private key that cannot be read"],
    ["a broken key", first.replace("MII", "AAA"), "holds a private key that cannot be read"],
    ["a short key", pemOf("pkcs8", 1024), NOT_ACCEPTED],
    ["a key with the exponent 3", pemOf("pkcs8", 2048, 3), NOT_ACCEPTED],
    ["a key of ES256", first + elliptic.export({ type: "pkcs8", format: "pem" }), NOT_ACCEPTED],
    ["a key of RSA-PSS", pss.export({ type: "pkcs8", format: "pem" }).toString(), NOT_ACCEPTED],
    ["a key twice", first + first, "holds a key twice"],
    ["too many keys", first.repeat(5), "holds more than 4 keys"],
  ])("%s", (_, pem, message) => {
    expect(() => parseEventKeys(pem)).toThrow(new EventKeysFault(message));
  });
});
