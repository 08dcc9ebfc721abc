/** The session state that the server passes to a page that it renders. */
import { expect, test } from "vitest";
import { initialOf } from "../../src/server/index.ts";

const IAT = 1_800_000_000;
const claims = { sub: "alice", sid: "s1", iat: IAT, exp: IAT + 300 };
const user = { state: "active", claims, accessToken: "a.b.c" } as const;
const nowMs = IAT * 1000 + 60_000;

test("has the claims and the age of the token, and the token where it is asked for", () => {
  expect(initialOf(user)).toEqual({ claims, ageMs: 0 });
  expect(initialOf(user, false, nowMs)).toEqual({ claims, ageMs: 60_000 });
  expect(initialOf(user, true, nowMs)).toEqual({ claims, ageMs: 60_000, text: "a.b.c" });
  expect(initialOf(user, false, IAT * 1000 - 5000)?.ageMs).toBe(0);
});

test("is nothing for a user who is not known to be signed in", () => {
  expect([initialOf({ state: "ended" }), initialOf({ state: "unavailable" })]).toEqual([undefined, undefined]);
  expect(initialOf({ ...user, claims: { sub: "alice", sid: "s1", exp: IAT } })).toBeUndefined();
});
