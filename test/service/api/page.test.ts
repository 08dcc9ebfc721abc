import { expect, test } from "vitest";
import { pageSizeOf, parsePageToken, rejectForeignPosition, toPageToken } from "../../../src/service/api/page.ts";
import { InvalidCursor } from "../../../src/service/session/ports.ts";

test("a page size over the limit is clamped, and 0 is the default (AIP-158)", () => {
  expect([0, 1, 100, 101, 2 ** 31 - 1].map(pageSizeOf)).toEqual([20, 1, 100, 100, 100]);
});

test("a page token continues where its page ended, and does not show where", () => {
  const position = "1800000000000.AAECAwQFBgcICQoLDA0ODxA";
  const token = toPageToken(position);
  expect(token).toMatch(/^[\w-]+$/);
  expect(token).not.toContain("1800000000000");
  expect(parsePageToken(token)).toBe(position);
});

test("the first page has no token, and the last page gives none", () => {
  expect(parsePageToken("")).toBeUndefined();
  expect(toPageToken(undefined)).toBe("");
});

test.each(["!", "a", "YQ==", " YQ", "Y Q"])("%j is not a page token", (token) => {
  expect(() => parsePageToken(token)).toThrow(/page_token: is not a page token/);
});

test("a position that the store does not know is a bad page token, any other failure stays what it is", () => {
  expect(() => rejectForeignPosition(new InvalidCursor("no"))).toThrow(/page_token/);
  const failure = new Error("the store is down");
  expect(() => rejectForeignPosition(failure)).toThrow(failure);
});
