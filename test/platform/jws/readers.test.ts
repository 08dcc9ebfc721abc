/** Everybody who accepts a compact JWS refuses the same texts, although each of them is signed with the right key. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, describe, expect, test } from "vitest";
import { verifyProof } from "../../../src/platform/dpop/verify-proof.ts";
import { createLogoutVerifier } from "../../../src/service/sign-in/logout-token.ts";
import { createTokenVerifier, partiesOf } from "../../../src/service/sign-in/signed-token.ts";
import { createAccessTokens } from "../../../src/service/tokens/access-token.ts";
import { verifyDeviceProof } from "../../../src/service/tokens/device-proof.ts";
import { readyKeys } from "../../../src/service/tokens/keys.ts";
import { createVerifier } from "../../../src/verifier/index.ts";
import * as web from "../../../src/verifier/web/index.ts";
import * as webProof from "../../../src/verifier/web/verify-proof.ts";
import { LOGOUT_EVENTS } from "../../support/logout-token.ts";
import { countingEntropy, timeAt } from "../../support/tokens.ts";
import {
  claims as accessClaims,
  head,
  kid,
  privateKey,
  publicKey,
  raw,
  ring,
  signed,
} from "../../support/verifier/forge.ts";

const { iss: ISSUER, aud: AUDIENCE, iat } = accessClaims;
const keys = { current: readyKeys(ring) };
const jwks = createServer((_, response) => response.end(JSON.stringify(keys.current.jwks))).listen(0, "127.0.0.1");
await new Promise((resolve) => jwks.once("listening", resolve));
const jwksUrl = `http://127.0.0.1:${(jwks.address() as AddressInfo).port}`;
const verifiers = [createVerifier, web.createVerifier].map((create) =>
  create({ issuer: ISSUER, audience: AUDIENCE, jwksUrl }),
);
afterAll(() => {
  for (const verifier of verifiers) verifier.close();
  jwks.close();
});

type Members = Readonly<Record<string, unknown>>;
type Result = { readonly ok: true } | { readonly ok: false; readonly reason: string; readonly code?: string };
/** Reads a text. `refusal` is the reason for one that is not of the strict form. */
type Reader = {
  readonly header: Members;
  readonly claims: Members;
  readonly refusal: string;
  read(text: string): Result | Promise<Result>;
};

const url = "https://api.example/things";
const own = { jwk: publicKey.export({ format: "jwk" }) };
const proof = {
  header: { typ: "dpop+jwt", alg: "ES256", ...own },
  claims: { jti: "one", htm: "GET", htu: url, iat },
  refusal: "proof_malformed",
};
const expected = { method: "GET", urls: [url], nowMs: iat * 1000 };
const event = { header: { typ: "logout+jwt", alg: "ES256", kid }, refusal: "malformed" };
const eventClaims = { iss: ISSUER, aud: AUDIENCE, iat, jti: "one", sid: "a login", events: LOGOUT_EVENTS };
const access = { header: head, claims: accessClaims, refusal: "malformed" };
const tokens = createAccessTokens({
  ...{ keys, issuer: ISSUER, ttlMs: 600_000, entropy: countingEntropy(), time: timeAt(() => iat * 1000) },
});
const codeOf = (result: Result): Result => (result.ok ? result : { ok: false, reason: result.code ?? result.reason });
const [verifyLogout, verifyEvent] = [
  createLogoutVerifier(ISSUER, AUDIENCE, jwksUrl),
  createTokenVerifier(ISSUER, AUDIENCE, jwksUrl, 600, event.header.typ),
];

const READERS: Readonly<Record<string, Reader>> = {
  "the verifier": { ...access, read: (text) => (verifiers[0] as web.Verifier).verify(text) },
  "the verifier of other runtimes": { ...access, read: (text) => (verifiers[1] as web.Verifier).verify(text) },
  "the service, of access tokens": { ...access, read: (text) => tokens.verify(text) },
  "the check of DPoP": { ...proof, read: (text) => verifyProof(text, expected) },
  "the check of DPoP in other runtimes": { ...proof, read: (text) => webProof.verifyProof(text, expected) },
  "the check of device proofs": {
    ...{ header: { typ: "dbsc+jwt", alg: "ES256", ...own }, claims: { jti: "challenge" }, refusal: "malformed" },
    read: (text) => verifyDeviceProof(text, { kind: "registration" }),
  },
  "the receiver of logout tokens": {
    ...{ ...event, claims: eventClaims },
    read: async (text) => codeOf(await verifyLogout(text)),
  },
  "the receiver of security events": {
    ...{ ...event, claims: eventClaims },
    read: async (text) => codeOf(await verifyEvent(text)),
  },
  "the search for who has sent an event": {
    ...{ ...event, claims: eventClaims },
    read: (text) => (partiesOf(text)?.issuer === ISSUER ? { ok: true } : { ok: false, reason: "malformed" }),
  },
};

const sign = (header: string | Buffer, payload: string | Buffer) => signed(raw(header), raw(payload), privateKey);
const withMember = (object: string, member: string) => `${object.slice(0, -1)},${member}}`;
/** Sets spare bits of a segment, which then has the same bytes. */
const spare = (segment: string) => {
  const last = segment.at(-1) as string;
  return segment.length % 4 === 0 ? `${segment}A` : segment.slice(0, -1) + String.fromCharCode(last.charCodeAt(0) + 1);
};

/** The texts, made of a header and a payload that are accepted. */
const TEXTS: Readonly<Record<string, (header: string, payload: string) => string>> = {
  nothing: () => "",
  "two segments": (header, payload) => sign(header, payload).split(".").slice(0, 2).join("."),
  "four segments": (header, payload) => `${sign(header, payload)}.AAAA`,
  "no signature": (header, payload) => `${raw(header)}.${raw(payload)}.`,
  padding: (header, payload) => `${sign(header, payload)}==`,
  "a space after": (header, payload) => `${sign(header, payload)} `,
  "a line break after": (header, payload) => `${sign(header, payload)}\n`,
  "spare bits in the signature": (header, payload) => spare(sign(header, payload)),
  "spare bits in the header": (header, payload) => signed(spare(raw(header)), raw(payload)),
  "spare bits in the payload": (header, payload) => signed(raw(header), spare(raw(payload))),
  "a header with crit": (header, payload) => sign(withMember(header, '"crit":["exp"]'), payload),
  "a header with b64": (header, payload) => sign(withMember(header, '"b64":true'), payload),
  "a header with a member twice": (header, payload) => sign(withMember(header, '"alg":"ES256"'), payload),
  "a header that is a list": (header, payload) => sign(`[${header}]`, payload),
  "a payload with a member twice": (header, payload) => sign(header, withMember(payload, '"jti":"one"')),
  "a payload with a member twice, deep in it": (header, payload) =>
    sign(header, withMember(payload, '"a":[{"b":1,"b":1}]')),
  "a payload that is a list": (header, payload) => sign(header, `[${payload}]`),
  "a payload that is a number": (header) => sign(header, "5"),
  "a payload that is an empty text": (header) => sign(header, '""'),
  "a payload that is null": (header) => sign(header, "null"),
  "a payload that is cut": (header, payload) => sign(header, payload.slice(0, -1)),
  "a payload with a byte order mark": (header, payload) => sign(header, `\ufeff${payload}`),
  "a payload that is not UTF-8": (header, payload) =>
    sign(header, Buffer.from(withMember(payload, '"a":"\xff"'), "latin1")),
  "a payload with half of a surrogate pair": (header, payload) => sign(header, withMember(payload, '"a":"\\ud800"')),
  "a payload that is too long": (header, payload) => sign(header, withMember(payload, `"a":"${"a".repeat(16_384)}"`)),
};

describe.each(Object.entries(READERS))("%s", (_, { header, claims, refusal, read }) => {
  const [head, payload] = [JSON.stringify(header), JSON.stringify(claims)];

  test("accepts a text of the strict form", async () => {
    expect(await read(sign(head, payload))).toMatchObject({ ok: true });
  });

  test.each(Object.entries(TEXTS))("refuses %s", async (_name, text) => {
    expect(await read(text(head, payload))).toMatchObject({ ok: false, reason: refusal });
  });
});
