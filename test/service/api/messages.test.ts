/** Tests the limits that code checks and .proto rules cannot express, with values at each limit and just beyond it. */
import { expect, test } from "vitest";
import { audienceOf, authenticationOf, claimsOf, durationOf, sessionIdOf } from "../../../src/service/api/messages.ts";
import { givenTime } from "../../../src/service/api/times.ts";
import { wallMs } from "../../../src/service/session/time.ts";

const NOW = 1_800_000_000_000;
const at = (ms: number) =>
  ({
    $typeName: "google.protobuf.Timestamp",
    seconds: BigInt(Math.floor(ms / 1000)),
    nanos: (ms % 1000) * 1e6,
  }) as const;
const lasting = (seconds: number, nanos = 0) =>
  ({ $typeName: "google.protobuf.Duration", seconds: BigInt(seconds), nanos }) as const;
const authentication = (more: object) => authenticationOf({ amr: [], acr: "", ...more }, wallMs(NOW));

test.each<[what: string, good: () => unknown, bad: () => unknown, message: RegExp]>([
  [
    "the longest duration",
    () => durationOf("d", lasting(9), 9000),
    () => durationOf("d", lasting(9, 1_000_000), 9000),
    /d: must be at most 9s/,
  ],
  [
    "claims",
    () => claimsOf({ c: "x".repeat(4088) }),
    () => claimsOf({ c: "x".repeat(4089) }),
    /claims: is longer than 4096 bytes/,
  ],
  ["a claim's name", () => claimsOf({ role: "" }), () => claimsOf({ sub: "" }), /claims\.sub: is a reserved claim/],
  [
    "a claim of the authentication",
    () => claimsOf({ amrs: 1 }),
    () => claimsOf({ amr: 1 }),
    /claims\.amr: is set by the field amr/,
  ],
  [
    "the first time",
    () => authentication({ authTime: at(1000) }),
    () => authentication({ authTime: at(999) }),
    /auth_time: is not after 1970/,
  ],
  [
    "the last time",
    () => authentication({ authTime: at(NOW + 60_000) }),
    () => authentication({ authTime: at(NOW + 60_001) }),
    /auth_time: is in the future/,
  ],
  [
    "a session id",
    () => sessionIdOf("id", "AAECAwQFBgcICQoLDA0ODxA"),
    () => sessionIdOf("id", "AAECAwQFBgcICQoLDA0ODxA "),
    /id: is not a session id/,
  ],
])("%s: the last value that is accepted, and the first that is not", (_, good, bad, message) => {
  expect(good).not.toThrow();
  expect(bad).toThrow(message);
});

test("an absent field has its default", () => {
  expect(durationOf("d", undefined, 9000)).toBe(9000);
  expect(audienceOf("", [], "ours")).toBe("ours");
  expect(claimsOf(undefined)).toBe("{}");
  expect(authentication({})).toBeUndefined();
});

test("a single audience is a text, several are a list", () => {
  expect(audienceOf("a", [], "ours")).toBe("a");
  expect(audienceOf("", ["a"], "ours")).toBe("a");
  expect(audienceOf("", ["a", "b"], "ours")).toEqual(["a", "b"]);
});

test("durations are truncated to milliseconds, times rounded up to them", () => {
  expect(durationOf("d", lasting(1, 500_999_999), 9000)).toBe(1500);
  expect(givenTime({ ...at(NOW), nanos: 1 }, 0)).toBe(NOW + 1);
  expect(givenTime(at(NOW), 0)).toBe(NOW);
  expect(givenTime(at(NOW), 5_000)).toBe(NOW - 5_000);
  expect(authentication({ authTime: at(NOW - 1) })?.time).toBe(NOW - 1000);
});

test.each([{ n: Number.POSITIVE_INFINITY }, { a: [1, { b: Number.NaN }] }, { "\ud800": 1 }, { a: ["x\udc00"] }])(
  "claims that JSON cannot represent are rejected: %j",
  (claims) => {
    expect(() => claimsOf(claims as never)).toThrow(/claims: has/);
  },
);
