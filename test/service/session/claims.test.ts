/** Which claims follow from a session, and which of them the introspection of a refresh token returns. */
import { expect, test } from "vitest";
import { authenticationClaims, introspectedClaims, sessionMembers } from "../../../src/service/session/claims.ts";
import type { Session } from "../../../src/service/session/model.ts";
import { wallMs } from "../../../src/service/session/time.ts";
import { NOW, sessionOf } from "../../support/session/scripted.ts";

const thumbprint = new Uint8Array(32);
const jkt = "A".repeat(43);
const KEY = { key: { algorithm: "ES256", bytes: new Uint8Array(64), thumbprint }, state: "bound", since: NOW } as const;
const DPOP = { key: { algorithm: "DPoP", thumbprint }, state: "bound", since: NOW } as const;

test.each<[string, Partial<Session>, boolean, object, object]>([
  ["nothing more", {}, true, {}, {}],
  ["a version", { version: 3 }, false, { sv: 3 }, {}],
  ["a key of its device that was not proven", { device: KEY }, false, {}, {}],
  ["a key of its device that was proven", { device: KEY }, true, { device_bound: true }, { device_bound: true }],
  ["a key that each request proves", { device: DPOP }, true, { cnf: { jkt } }, { cnf: { jkt } }],
  ["an actor", { actor: { subject: "support" } }, true, { act: { sub: "support" } }, { act: { sub: "support" } }],
])("a session that has %s", (_, more, deviceProven, inTokens, introspected) => {
  const session = sessionOf(more);
  const text = `{"sid":"a"${sessionMembers(session, deviceProven)}}`;
  expect(JSON.parse(text)).toEqual({ sid: "a", sct: NOW, client_id: "web", ...inTokens });
  const claims = { client_id: "web", ...introspected };
  expect(introspectedClaims(session, deviceProven)).toStrictEqual(claims);
});

test("an authentication has the claims that it says something of", () => {
  const nothing = { time: wallMs(0), methods: [], contextClass: "" };
  expect(authenticationClaims(nothing)).toEqual({});
  expect(authenticationClaims({ ...nothing, time: wallMs(1_999) })).toEqual({ auth_time: 1 });
  expect(authenticationClaims({ ...nothing, methods: ["pwd", "otp"] })).toEqual({ amr: ["pwd", "otp"] });
  expect(authenticationClaims({ ...nothing, contextClass: "urn:2" })).toEqual({ acr: "urn:2" });
});
