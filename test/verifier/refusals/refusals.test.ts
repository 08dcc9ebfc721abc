/** A verifier reports why it refuses tokens: wrong options refuse every token, and must leave a trace. */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Code, createClient, createRouterTransport } from "@connectrpc/connect";
import { expect, onTestFinished, test } from "vitest";
import { SessionService } from "../../../gen/auth/v1/session_pb.ts";
import {
  accessTokenInterceptor,
  accessTokenMiddleware,
  createVerifier,
  type VerifierEvent,
  type VerifierOptions,
} from "../../../src/verifier/index.ts";
import { describeRefusal } from "../../../src/verifier/refusals/details.ts";
import { createVerifier as createWebVerifier } from "../../../src/verifier/web/index.ts";
import { bearer } from "../../support/sessions.ts";
import { CLAIMS, createForge, HEAD, NOW_MS } from "../../vectors/format.ts";
import { createSign, JWKS } from "../../vectors/keys.ts";

const ISSUER = "https://auth.example";
const AUDIENCE = "https://api.example";
const { token } = createForge(createSign([]));
const VALID = token();
const ELSEWHERE = token({}, { iss: "https://other.example" });

type Refused = Extract<VerifierEvent, { event: "token_refused" }>;
const refusedOf = (events: readonly VerifierEvent[]) =>
  events.filter((event): event is Refused => event.event === "token_refused");

/** Starts a verifier with a clock that the test moves. */
async function open(options: Partial<VerifierOptions> = {}, create = createVerifier) {
  const events: VerifierEvent[] = [];
  const time = { ms: 100_000 };
  const verifier = create({
    ...{ issuer: ISSUER, audience: AUDIENCE, jwksUrl: "http://127.0.0.1/jwks" },
    ...{ clock: () => NOW_MS, monotonic: () => time.ms },
    fetch: async () => Response.json(JWKS),
    report: (event) => events.push(event),
    ...options,
  });
  onTestFinished(() => verifier.close());
  await verifier.ready;
  return { verifier, time, refused: () => refusedOf(events) };
}

test("the first refusal of each reason in a minute is reported, and each one is counted", async () => {
  const { verifier, time, refused } = await open();
  const counts = () => refused().map(({ reason, count }) => [reason, count]);
  for (let each = 0; each < 3; each += 1) await verifier.verify(ELSEWHERE);
  await verifier.verify("opaque");
  expect(counts()).toEqual([
    ["wrong_issuer", 1],
    ["malformed", 1],
  ]);
  time.ms += 59_999;
  await verifier.verify(ELSEWHERE);
  expect(counts()).toHaveLength(2);
  time.ms += 1;
  await verifier.verify(ELSEWHERE);
  expect(counts().at(-1)).toEqual(["wrong_issuer", 5]);
  expect(verifier.state()).toMatchObject({
    kids: JWKS.keys.map(({ kid }) => kid),
    refusals: { wrong_issuer: { count: 5 }, malformed: { count: 1 } },
  });
});

test.each([
  ["Node", createVerifier],
  ["WebCrypto", createWebVerifier],
])("an accepted token is neither described nor counted, with %s", async (_, create) => {
  const { verifier, refused } = await open({}, create);
  expect(await verifier.verify(VALID)).toMatchObject({ ok: true });
  expect(refused()).toEqual([]);
  expect(verifier.state().refusals).toEqual({});
});

test("texts are short, in one line, and never the token", async () => {
  const iss = `https://e\u202Evil.example/\r\nfake line\u0000${"x".repeat(10_000)}`;
  const { verifier, refused } = await open();
  const presented = token({}, { iss });
  await verifier.verify(presented);
  await verifier.verify(`${token({ kid: "k" }).slice(0, -86)}${"A".repeat(86)}`);
  const [byIssuer, byKey] = refused();
  expect(byIssuer?.received).toEqual({ iss: `https://evil.example/fake line${"x".repeat(170)}…` });
  expect(byKey?.received).toEqual({ kid: "k", iss: ISSUER });
  const text = JSON.stringify(refused());
  for (const segment of presented.split(".")) expect(text).not.toContain(segment);
});

test.each([
  ["a JWT of another kind of issuer", token({ typ: "JWT" }), "wrong_type", { typ: "at+jwt" }, { typ: "JWT" }],
  [
    "claims of another kind of issuer",
    token({}, { sid: undefined, client_id: undefined }),
    "malformed",
    { header: "alg, kid, typ", claims: "client_id, exp, iat, jti, sid, sub" },
    { header: "alg, kid, typ", claims: "aud, exp, iat, iss, jti, sct, sub" },
  ],
  [
    "an opaque token",
    "0123456789abcdef",
    "malformed",
    { header: "alg, kid, typ", claims: "client_id, exp, iat, jti, sid, sub" },
    { header: "not readable", claims: "not readable" },
  ],
  ["a clock that is ahead", token({}, { exp: 1 }), "expired", { exp: `> ${NOW_MS / 1000}` }, { exp: "1" }],
  ["a bound token", token({}, { cnf: { jkt: "j" } }), "not_bearer", { cnf: "absent" }, { cnf: "of another type" }],
  [
    "a member that is no text",
    token({}, { iss: { toString: 1 } }),
    "wrong_issuer",
    { iss: ISSUER },
    { iss: "of another type" },
  ],
])("%s is described", async (_, presented, reason, expected, received) => {
  const { verifier, refused } = await open();
  await verifier.verify(presented);
  expect(refused()).toEqual([{ event: "token_refused", reason, count: 1, expected, received }]);
});

const KEYS = { kids: ["b", "a"], find: (kid: string) => (kid === "a" ? { alg: "RS256" as const } : undefined) };
const DESCRIBED = { issuer: ISSUER, audiences: new Set(["y", "x"]), keys: KEYS, clock: () => NOW_MS + 999 };
const NOW = NOW_MS / 1000;
const HEADER_NAMES = "alg, kid, typ";
const CLAIM_NAMES = "client_id, exp, iat, jti, sid, sub";
const UNREADABLE = { header: "not readable", claims: "not readable" };
/** A text of the greatest length that is read, with claims between its dots. */
const LONGEST = `.${Buffer.from('{"a":1}').toString("base64url")}.`.padEnd(16_384, "A");

test.each<[reason: string, presented: unknown, expected: object, received: object]>([
  ["wrong_type", token({ typ: 1 }), { typ: "at+jwt" }, { typ: "1" }],
  ["wrong_algorithm", token({ kid: "a", alg: "ES256" }), { alg: "RS256" }, { alg: "ES256" }],
  ["wrong_algorithm", token({ kid: "c", alg: "none" }), { alg: "ES256, EdDSA, RS256" }, { alg: "none" }],
  ["wrong_algorithm", token({ kid: ["a"], alg: "none" }), { alg: "ES256, EdDSA, RS256" }, { alg: "none" }],
  ["revoked_key", token({ kid: "a" }), { kid: "a, b" }, { kid: "a" }],
  ["unknown_key", token({ kid: "c" }), { kid: "a, b", iss: ISSUER }, { kid: "c", iss: ISSUER }],
  ["forged", token({ kid: "a" }, { iss: undefined }), { kid: "a, b", iss: ISSUER }, { kid: "a", iss: "absent" }],
  ["wrong_audience", token({}, { aud: ["b", "a"] }), { aud: "x, y" }, { aud: "b, a" }],
  ["not_bearer", token({}, { cnf: "c" }), { cnf: "absent" }, { cnf: "c" }],
  ["not_device_bound", token({}, { device_bound: false }), { device_bound: "true" }, { device_bound: "false" }],
  ["not_yet_valid", token({}, { nbf: NOW + 1.9 }), { nbf: `<= ${NOW}` }, { nbf: `${NOW + 1}` }],
  ["expired", token({}, { exp: 2 ** 53 }), { exp: `> ${NOW}` }, { exp: "of another type" }],
  ["stale", VALID, {}, {}],
  [
    "malformed",
    "..",
    { header: HEADER_NAMES, claims: CLAIM_NAMES },
    { header: "not readable", claims: "not readable" },
  ],
  [
    "malformed",
    `${token({ alg: undefined }).split(".")[0]}.`,
    { header: HEADER_NAMES, claims: CLAIM_NAMES },
    { header: "kid, typ", claims: "not readable" },
  ],
  ["malformed", undefined, { header: HEADER_NAMES, claims: CLAIM_NAMES }, UNREADABLE],
  ["malformed", LONGEST, { header: HEADER_NAMES, claims: CLAIM_NAMES }, { ...UNREADABLE, claims: "a" }],
  [
    "malformed",
    token({}, { more: "m".repeat(16_384) }),
    { header: HEADER_NAMES, claims: CLAIM_NAMES },
    { header: "not readable", claims: "not readable" },
  ],
  ...[
    ["", "empty"],
    ["\n\u200e", "empty"],
    [[], "empty"],
    [["a", 1], "of another type"],
    [null, "of another type"],
    [true, "true"],
    ["i".repeat(200), "i".repeat(200)],
    ["\u{1f600}".repeat(201), `${"\u{1f600}".repeat(200)}\u2026`],
  ].map(([iss, text]): [string, string, object, object] => [
    ...(["wrong_issuer", token({}, { iss }), { iss: ISSUER }, { iss: text }] as [string, string, object, object]),
  ]),
])("%s is described by what was expected and received: case %#", (reason, presented, expected, received) => {
  expect(describeRefusal(reason, { token: presented as string }, DESCRIBED)).toEqual({ expected, received });
});

test.each<[reason: string, claims: object | undefined, expected: object, received: object]>([
  ["proof_wrong_method", { htm: "GET" }, { htm: "POST" }, { htm: "GET" }],
  ["proof_wrong_url", { htu: "https://b.example/#?" }, { htu: "https://a.example/x" }, { htu: "https://b.example/" }],
  ["proof_wrong_url", { htu: 7 }, { htu: "https://a.example/x" }, { htu: "7" }],
  ["proof_stale", { iat: 1 }, { iat: `${NOW} +- 60` }, { iat: "1" }],
  ["proof_stale", undefined, { iat: `${NOW} +- 60` }, { iat: "absent" }],
  ["proof_forged", { iat: 1 }, {}, {}],
])("%s is described by the claims %j of the proof", (reason, claims, expected, received) => {
  const encoded = Buffer.from(JSON.stringify(claims ?? [])).toString("base64url");
  const request = { method: "POST", url: "https://a.example/x?y", proof: claims && `e30.${encoded}.AA` };
  expect(describeRefusal(reason, { token: VALID, request }, DESCRIBED)).toEqual({ expected, received });
});

test("a proof for another origin is described without its query", async () => {
  const { verifier, refused } = await open();
  const bound = token({}, { cnf: { jkt: "j" } });
  const payload = { jti: "j", htm: "GET", htu: "https://wrong.example/a?code=secret", iat: NOW_MS / 1000 };
  const encoded = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const jwk = { kty: "OKP", crv: "Ed25519", x: Buffer.alloc(32, 9).toString("base64url") };
  const proof = `${encoded({ typ: "dpop+jwt", alg: "EdDSA", jwk })}.${encoded(payload)}.${"A".repeat(86)}`;
  await verifier.verifyBound(bound, { method: "GET", url: `${AUDIENCE}/a?x=1`, proof });
  expect(refused()).toEqual([
    {
      ...{ event: "token_refused", reason: "proof_wrong_url", count: 1 },
      expected: { htu: `${AUDIENCE}/a` },
      received: { htu: "https://wrong.example/a" },
    },
  ]);
});

test("the adapters report what they refuse, also a header that has no token", async () => {
  const { verifier, refused } = await open();
  const guard = accessTokenMiddleware(verifier);
  const server = createServer((request, response) => guard(request, response, () => response.end()));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  expect((await fetch(url, { headers: { authorization: "Token abc" } })).status).toBe(401);
  const transport = createRouterTransport(({ service }) => service(SessionService, {}), {
    router: { interceptors: [accessTokenInterceptor(verifier)] },
  });
  const call = createClient(SessionService, transport).refresh({}, { headers: bearer(ELSEWHERE) });
  await expect(call).rejects.toMatchObject({ code: Code.Unauthenticated });
  expect(refused().map(({ reason }) => reason)).toEqual(["malformed", "wrong_issuer"]);
});

test("a `report` that throws changes no verdict", async () => {
  const { verifier } = await open({
    report() {
      throw new Error("the log is broken");
    },
  });
  expect(await verifier.verify(ELSEWHERE)).toEqual({ ok: false, reason: "wrong_issuer" });
  expect(verifier.state().refusals.wrong_issuer?.count).toBe(1);
});

test("a header that names a key of another algorithm is described with the algorithm of the key", async () => {
  const { verifier, refused } = await open();
  await verifier.verify(token({ ...HEAD, alg: "EdDSA" }, CLAIMS));
  expect(refused()[0]).toMatchObject({ expected: { alg: "ES256" }, received: { alg: "EdDSA" } });
});
