/** The limits of a token, exactly where they are. */
import { createPrivateKey, sign } from "node:crypto";
import { expect, test } from "vitest";
import { generateRing } from "../../src/tokens/generate-key.ts";
import { readyKeys } from "../../src/tokens/keys.ts";
import { importKey, type Key } from "../../src/verifier/key.ts";
import { type KeySet, rememberHeader } from "../../src/verifier/key-set.ts";
import { checkToken } from "../../src/verifier/token.ts";
import { AUDIENCE, ISSUER } from "./support.ts";

const NOW_MS = 1_800_000_000_000;
const NOW = NOW_MS / 1000;
const ring = generateRing("ES256", NOW_MS);
const { kid, jwk = {} } = ring.signing[0] ?? { kid: "" };
const privateKey = createPrivateKey({ key: jwk, format: "jwk" });
const key = (await importKey(readyKeys(ring).jwks.keys[0])) as Key;
const keySet = () =>
  ({
    find: (name: string) => (name === kid ? key : undefined),
    headers: new Map(),
    isRevoked: () => false,
  }) as unknown as KeySet;

const GOOD = {
  iss: ISSUER,
  sub: "user-1",
  aud: AUDIENCE,
  exp: NOW + 600,
  iat: NOW,
  jti: "j1",
  sid: "AAECAwQFBgcICQoLDA0ODxA",
  client_id: "app",
};
const raw = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");

function token(claims: object, header: object = { typ: "at+jwt", alg: "ES256", kid }): string {
  const input = `${raw(header)}.${raw({ ...GOOD, ...claims })}`;
  return `${input}.${sign("sha256", Buffer.from(input), { key: privateKey, dsaEncoding: "ieee-p1363" }).toString("base64url")}`;
}

function says(text: string, clock = NOW_MS, keys = keySet()): string {
  const checked = checkToken(text, keys, { issuer: ISSUER, audiences: new Set([AUDIENCE]), clock: () => clock });
  return typeof checked === "string" ? checked : "ok";
}

test.each<[what: string, claims: object, clock: number, verdict: string]>([
  ["valid from this very millisecond", { nbf: NOW }, NOW_MS, "ok"],
  ["valid from the next millisecond", { nbf: NOW }, NOW_MS - 1, "not_yet_valid"],
  ["in its last millisecond", { exp: NOW + 1 }, NOW_MS + 999, "ok"],
  ["expired in this very millisecond", { exp: NOW + 1 }, NOW_MS + 1000, "expired"],
  ["issued when it expires", { iat: NOW + 600 }, NOW_MS, "ok"],
  ["issued after it expires", { iat: NOW + 601 }, NOW_MS, "malformed"],
  ["without an audience", { aud: [] }, NOW_MS, "wrong_audience"],
  ["with an audience that is none", { aud: [AUDIENCE, 1] }, NOW_MS, "malformed"],
  ["for us among others", { aud: ["other", AUDIENCE] }, NOW_MS, "ok"],
  ["for others alone", { aud: ["other", "another"] }, NOW_MS, "wrong_audience"],
  ["without a subject", { sub: "" }, NOW_MS, "malformed"],
  ["without a client", { client_id: undefined }, NOW_MS, "malformed"],
  ["bound to a key", { cnf: null }, NOW_MS, "not_bearer"],
  ["that expires at no time", { exp: "1" }, NOW_MS, "malformed"],
  ["issued at no time", { iat: null }, NOW_MS, "malformed"],
  ["valid from no time", { nbf: "1" }, NOW_MS, "not_yet_valid"],
])("a token %s", (_, claims, clock, verdict) => {
  expect(says(token(claims), clock)).toBe(verdict);
});

test("a token of the longest length is read, a longer one is not", () => {
  const LONGEST = 16_384;
  const padding = LONGEST - token({ x: "" }).length;
  // Four characters of base64url hold three bytes.
  const lengths = Array.from({ length: 9 }, (_, more) =>
    token({ x: "x".repeat(Math.floor((padding * 3) / 4) - 4 + more) }),
  );
  const fits = lengths.filter(({ length }) => length <= LONGEST);
  const long = lengths.filter(({ length }) => length > LONGEST);
  expect(Math.max(...fits.map(({ length }) => length))).toBeGreaterThanOrEqual(LONGEST - 1);
  expect(fits.map((text) => says(text))).toEqual(fits.map(() => "ok"));
  expect(long.map((text) => says(text))).toEqual(long.map(() => "malformed"));
  expect(long.length).toBeGreaterThan(0);
});

test.each([
  ["at+JWT", "ok"],
  ["application/at+jwt", "ok"],
  ["xapplication/at+jwt", "wrong_type"],
  ["at+jwt;x", "wrong_type"],
  ["JWT", "wrong_type"],
])("the type %s", (typ, verdict) => {
  expect(says(token({}, { typ, alg: "ES256", kid }))).toBe(verdict);
});

test("headers are remembered once their signature was good, and a bounded number of them", () => {
  const keys = keySet();
  expect(says(token({}), NOW_MS, keys)).toBe("ok");
  expect(keys.headers.size).toBe(1);
  says(`${token({}).slice(0, -4)}AAAA`, NOW_MS, keys);
  expect(keys.headers.size).toBe(1);
  for (let count = 1; count < 100; count++) rememberHeader(keys, `header ${count}`, key);
  expect(keys.headers.size).toBe(100);
  rememberHeader(keys, "one more", key);
  expect([...keys.headers.keys()]).toEqual(["one more"]);
});
