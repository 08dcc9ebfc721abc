/** Which session a request is about, if its cookie has one value or several. */
import { expect, test } from "vitest";
import type { Session } from "../../../../src/service/session/model.ts";
import type { RefreshToken } from "../../../../src/service/session/ports.ts";
import {
  authenticateRefreshTokens,
  compareNewness,
  newestFirst,
  type PresentedCookie,
  type PresentedTokens,
} from "../../../../src/service/session/rotation/presented-cookie.ts";
import { storeMs } from "../../../../src/service/session/time.ts";
import {
  findOf,
  NOW,
  REFRESH_TOKENS,
  SID,
  script,
  sessionOf,
  sidOf,
  tokenOf,
} from "../../../support/session/scripted.ts";

const [A, B, C, D, E] = [SID, sidOf("b"), sidOf("c"), sidOf("d"), sidOf("e")].map((sid) => tokenOf(sid)) as [
  RefreshToken,
  RefreshToken,
  RefreshToken,
  RefreshToken,
  RefreshToken,
];
const text = REFRESH_TOKENS.mint;
const older = tokenOf(SID, { generation: 2, nonce: "older" });
const sibling = tokenOf(SID, { issuedAt: storeMs(NOW), nonce: "sibling" });

test.each<[string, PresentedCookie, object]>([
  ["no cookie", undefined, { ok: false, reason: "absent" }],
  ["an empty one", "", { ok: false, reason: "absent" }],
  ["no value", [], { ok: false, reason: "absent" }],
  ["one token", text(A), { ok: true, tokens: [A] }],
  ["a forged token", "?forged", { ok: false, reason: "forged" }],
  ["a token and a forged one", ["?forged", text(A)], { ok: true, tokens: [A] }],
  ["two bad values, of which the last one counts", ["?forged", "?malformed"], { ok: false, reason: "malformed" }],
  ["a token of an unknown key before others", ["?unknown_key", "?forged"], { ok: false, reason: "unknown_key" }],
  ["a token of an unknown key behind others", ["?forged", "?unknown_key"], { ok: false, reason: "unknown_key" }],
  ["two tokens of one session, the newer first", [text(A), text(older)], { ok: true, tokens: [A] }],
  ["two tokens of one session, the newer last", [text(older), text(A)], { ok: true, tokens: [A] }],
  ["two tokens of one generation", [text(A), text(sibling)], { ok: true, tokens: [sibling] }],
  ["tokens of four sessions", [A, B, C, D].map(text), { ok: true, tokens: [A, B, C, D] }],
  ["tokens of five sessions", [A, B, C, D, E].map(text), { ok: false, reason: "ambiguous" }],
])("%s", (_, cookie, expected) => {
  expect(authenticateRefreshTokens(REFRESH_TOKENS, cookie)).toEqual(expected);
});

test("of two tokens of one age, the first is used", () => {
  const twin = { ...A, nonce: "twin" };
  expect(authenticateRefreshTokens(REFRESH_TOKENS, [text(A), text(twin)])).toEqual({ ok: true, tokens: [A] });
  expect(compareNewness(A, twin)).toBe(0);
  // The generation decides before the time.
  expect(compareNewness(A, { ...older, issuedAt: storeMs(NOW + 1) })).toBeGreaterThan(0);
});

test("for one token, the store is not read", async () => {
  const { store, steps } = script({});
  expect(await newestFirst(store, [A])).toEqual({ ok: true, tokens: [A] });
  expect(steps).toEqual([]);
});

test.each<[string, PresentedTokens, readonly Session[], PresentedTokens | undefined]>([
  ["the newest first", [A, B], [live("a", 1), live("b", 2)], [B, A]],
  ["the newest first, in the other order", [B, A], [live("a", 1), live("b", 2)], [B, A]],
  ["live sessions before others", [A, B, C], [live("c", 1)], [C, A, B]],
  ["sessions of one time by their ids", [B, A], [live("a", 1), live("b", 1)], [A, B]],
  ["sessions of nobody by their ids", [C, B, A], [], [A, B, C]],
  ["sessions of two subjects not at all", [A, B], [live("a", 1), live("b", 2, "mallory")], undefined],
])("tokens are ordered: %s", async (_, tokens, sessions, expected) => {
  const { store } = script({ find: findOf(...sessions) });
  const ordered = await newestFirst(store, tokens);
  expect(ordered).toEqual(expected ? { ok: true, tokens: expected } : { ok: false, reason: "ambiguous" });
});

function live(letter: string, createdAt: number, subject = "alice") {
  return sessionOf({ sid: sidOf(letter), createdAt: storeMs(createdAt), subject });
}
