/** Tokens at the exact limits of what is accepted. */
import { createPrivateKey, sign } from "node:crypto";
import { afterAll, expect, test } from "vitest";
import { generateRing } from "../../src/service/tokens/generate-key.ts";
import { readyKeys } from "../../src/service/tokens/keys.ts";
import { checkToken, importKey, type Key, NodeKeySet } from "../../src/verifier/token.ts";
import { AUDIENCE, ISSUER } from "../support/verifier/issuer.ts";

const NOW_MS = 1_800_000_000_000;
const NOW = NOW_MS / 1000;
const ring = generateRing("ES256", NOW_MS);
const { kid, jwk = {} } = ring.signing[0] ?? { kid: "" };
const privateKey = createPrivateKey({ key: jwk, format: "jwk" });
const key = importKey(readyKeys(ring).jwks.keys[0]) as Key;
const closing = new AbortController();
afterAll(() => closing.abort());

/** Returns a key set that has been read. */
async function readKeySet(): Promise<NodeKeySet> {
  const keys = new NodeKeySet({
    url: "http://127.0.0.1/jwks",
    fetch: async () => Response.json(readyKeys(ring).jwks),
    monotonic: () => 0,
    report: () => {},
    signal: closing.signal,
  });
  await keys.ready;
  return keys;
}
const keySet = await readKeySet();

const CLAIMS = {
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
  const input = `${raw(header)}.${raw({ ...CLAIMS, ...claims })}`;
  return `${input}.${sign("sha256", Buffer.from(input), { key: privateKey, dsaEncoding: "ieee-p1363" }).toString("base64url")}`;
}

function verdictOf(text: string, clock = NOW_MS, keys = keySet): string {
  const checked = checkToken(text, keys, { issuer: ISSUER, audiences: new Set([AUDIENCE]), clock: () => clock });
  return checked.ok ? "ok" : checked.reason;
}

test.each<[what: string, claims: object, clock: number, verdict: string]>([
  ["valid from this millisecond", { nbf: NOW }, NOW_MS, "ok"],
  ["valid from the next millisecond", { nbf: NOW }, NOW_MS - 1, "not_yet_valid"],
  ["in its last millisecond", { exp: NOW + 1 }, NOW_MS + 999, "ok"],
  ["expired in this millisecond", { exp: NOW + 1 }, NOW_MS + 1000, "expired"],
  ["issued when it expires", { iat: NOW + 600 }, NOW_MS, "ok"],
  ["issued after it expires", { iat: NOW + 601 }, NOW_MS, "malformed"],
  ["without an audience", { aud: [] }, NOW_MS, "wrong_audience"],
  ["with an audience that is not a string", { aud: [AUDIENCE, 1] }, NOW_MS, "malformed"],
  ["for one of several audiences", { aud: ["other", AUDIENCE] }, NOW_MS, "ok"],
  ["for other audiences only", { aud: ["other", "another"] }, NOW_MS, "wrong_audience"],
  ["without a subject", { sub: "" }, NOW_MS, "malformed"],
  ["without a client", { client_id: undefined }, NOW_MS, "malformed"],
  ["bound to a key", { cnf: null }, NOW_MS, "not_bearer"],
  ["with an exp that is not a time", { exp: "1" }, NOW_MS, "malformed"],
  ["with an iat that is not a time", { iat: null }, NOW_MS, "malformed"],
  ["with an nbf that is not a time", { nbf: "1" }, NOW_MS, "not_yet_valid"],
])("a token %s", (_, claims, clock, verdict) => {
  expect(verdictOf(token(claims), clock)).toBe(verdict);
});

test.each<[what: string, claims: object, verdict: string]>([
  ["whose client has proven its device key", { device_bound: true }, "ok"],
  ["without the claim", {}, "not_device_bound"],
  ["with the claim in another form", { device_bound: "true" }, "not_device_bound"],
  ["with the claim denied", { device_bound: false }, "not_device_bound"],
  ["that is refused anyway", { exp: 1 }, "expired"],
])("where a device key is required, a token %s", (_, claims, verdict) => {
  const expected = { issuer: ISSUER, audiences: new Set([AUDIENCE]), clock: () => NOW_MS, requireDeviceBound: true };
  const checked = checkToken(token(claims), keySet, expected);
  expect(checked.ok ? "ok" : checked.reason).toBe(verdict);
  expect(verdictOf(token({ device_bound: true }))).toBe("ok");
});

test("a token of the longest length is read, a longer one is not", () => {
  const LONGEST = 16_384;
  const padding = LONGEST - token({ x: "" }).length;
  // Three more characters of text make the token four characters longer (base64url), so several lengths are tried.
  const lengths = Array.from({ length: 9 }, (_, more) =>
    token({ x: "x".repeat(Math.floor((padding * 3) / 4) - 4 + more) }),
  );
  const fits = lengths.filter(({ length }) => length <= LONGEST);
  const long = lengths.filter(({ length }) => length > LONGEST);
  expect(Math.max(...fits.map(({ length }) => length))).toBeGreaterThanOrEqual(LONGEST - 1);
  expect(fits.map((text) => verdictOf(text))).toEqual(fits.map(() => "ok"));
  expect(long.map((text) => verdictOf(text))).toEqual(long.map(() => "malformed"));
  expect(long.length).toBeGreaterThan(0);
});

test.each([
  ["at+JWT", "ok"],
  ["application/at+jwt", "ok"],
  ["xapplication/at+jwt", "wrong_type"],
  ["at+jwt;x", "wrong_type"],
  ["JWT", "wrong_type"],
])("the type %s", (typ, verdict) => {
  expect(verdictOf(token({}, { typ, alg: "ES256", kid }))).toBe(verdict);
});

test("headers are cached after a valid signature, a bounded number of them", async () => {
  const keys = await readKeySet();
  expect(verdictOf(token({}), NOW_MS, keys)).toBe("ok");
  expect(keys.headers.size).toBe(1);
  verdictOf(`${token({}).slice(0, -4)}AAAA`, NOW_MS, keys);
  expect(keys.headers.size).toBe(1);
  for (let count = 1; count < 100; count++) keys.rememberHeader(`header ${count}`, key);
  expect(keys.headers.size).toBe(100);
  keys.rememberHeader("one more", key);
  expect([...keys.headers.keys()]).toEqual(["one more"]);
});

test("a token that is refused again and again is verified once", async () => {
  const keys = await readKeySet();
  const key = keys.find(kid) as Key;
  let verified = 0;
  const verifies: Key["verifies"] = (jws) => {
    verified++;
    return key.verifies(jws);
  };
  const counted = { ...key, verifies };
  keys.find = () => counted;
  const expired = token({ exp: NOW });
  const forged = `${token({ sub: "another" }).slice(0, -4)}AAAA`;
  for (let times = 0; times < 5; times++) {
    expect([verdictOf(expired, NOW_MS, keys), verdictOf(forged, NOW_MS, keys)]).toEqual(["expired", "forged"]);
  }
  expect(verified).toBe(2);
  // Once the clock is set back the token is accepted, because only its signature is remembered, not the refusal.
  expect(verdictOf(expired, NOW_MS - 1, keys)).toBe("ok");
});
