import { expect, test } from "vitest";
import { bindAtCreation, isDeviceBound, seenBy } from "../../../src/service/session/model.ts";
import { sessionOf } from "../../support/session/scripted.ts";
import { NOW } from "../../support/tokens.ts";

const thumbprint = new Uint8Array(32);
const KEY = { algorithm: "ES256", bytes: new Uint8Array(64), thumbprint } as const;
const DPOP = { key: { algorithm: "DPoP", thumbprint }, state: "bound", since: NOW } as const;

test("a session keeps what is known of its last refresh alone", () => {
  const first = { userAgent: "a", ipAddress: "192.0.2.1" };
  const second = { userAgent: "b", ipAddress: "192.0.2.2" };
  const session = sessionOf();
  expect(seenBy(session, first)).toEqual({ ...session, lastSeen: first });
  expect(seenBy(seenBy(session, first), second)).toEqual({ ...session, lastSeen: second });
  expect(seenBy(seenBy(session, first), undefined)).toStrictEqual(session);
});

test("a session that is created with a key is bound to it", () => {
  const session = sessionOf();
  expect(bindAtCreation(session, NOW)).toEqual(session);
  expect(bindAtCreation({ ...session, dpopJkt: "A".repeat(43) }, NOW)).toEqual({ ...session, device: DPOP });
});

test("a session is bound to its device by a key that was used and cannot leave it", () => {
  expect(isDeviceBound({})).toBe(false);
  expect(isDeviceBound({ device: { key: KEY, state: "registered", since: NOW } })).toBe(false);
  expect(isDeviceBound({ device: { key: KEY, state: "bound", since: NOW } })).toBe(true);
  expect(isDeviceBound({ device: DPOP })).toBe(false);
});
