/** The limits of requests, exactly where they are. */
import { expect, test } from "vitest";
import {
  audienceOf,
  authenticationOf,
  claimsOf,
  durationOf,
  pageSizeOf,
  sessionIdOf,
  subjectOf,
  textOf,
  timeAfter,
} from "../../src/api/messages.ts";

const NOW = 1_800_000_000_000;
const at = (ms: number) =>
  ({
    $typeName: "google.protobuf.Timestamp",
    seconds: BigInt(Math.floor(ms / 1000)),
    nanos: (ms % 1000) * 1e6,
  }) as const;
const lasting = (seconds: number, nanos = 0) =>
  ({ $typeName: "google.protobuf.Duration", seconds: BigInt(seconds), nanos }) as const;
const many = (count: number) => Array.from({ length: count }, (_, index) => `item-${index}`);
const authentication = (more: object) => authenticationOf({ amr: [], acr: "", ...more }, NOW);

test.each<[what: string, good: () => unknown, bad: () => unknown, message: RegExp]>([
  [
    "a subject",
    () => subjectOf("s".repeat(255)),
    () => subjectOf("s".repeat(256)),
    /subject: is longer than 255 bytes/,
  ],
  [
    "bytes, not characters",
    () => subjectOf(`${"é".repeat(127)}s`),
    () => subjectOf("é".repeat(128)),
    /subject: is longer/,
  ],
  ["a text", () => textOf("f", "ab", 2), () => textOf("f", "abc", 2), /f: is longer than 2 bytes/],
  [
    "control characters",
    () => textOf("f", "a b\u00a0", 9),
    () => textOf("f", "a\u0085", 9),
    /f: has control characters/,
  ],
  [
    "audiences",
    () => audienceOf("", many(8), ""),
    () => audienceOf("", many(9), ""),
    /audiences: has more than 8 items/,
  ],
  [
    "one audience",
    () => audienceOf("", ["a".repeat(255)], ""),
    () => audienceOf("", ["a".repeat(256)], ""),
    /audiences: is longer/,
  ],
  [
    "audiences once",
    () => audienceOf("", ["a", "b"], ""),
    () => audienceOf("", ["a", "a"], ""),
    /audiences: has an item twice/,
  ],
  [
    "an audience",
    () => audienceOf("a".repeat(255), [], ""),
    () => audienceOf("a".repeat(256), [], ""),
    /audience: is longer/,
  ],
  [
    "one field of audiences",
    () => audienceOf("a", [], ""),
    () => audienceOf("a", ["b"], ""),
    /audiences: may not be set beside/,
  ],
  [
    "audiences with text",
    () => audienceOf("", ["a"], ""),
    () => audienceOf("", [""], ""),
    /audiences: has an empty item/,
  ],
  ["a page", () => pageSizeOf(100), () => pageSizeOf(101), /page_size: must be between 0 and 100/],
  ["no page", () => pageSizeOf(0), () => pageSizeOf(-1), /page_size/],
  [
    "the shortest duration",
    () => durationOf("d", lasting(1), 9000),
    () => durationOf("d", lasting(0, 999_999_999), 9000),
    /d: must be between 1s and 9s/,
  ],
  [
    "the longest duration",
    () => durationOf("d", lasting(9), 9000),
    () => durationOf("d", lasting(9, 1_000_000), 9000),
    /d: must be between/,
  ],
  [
    "claims",
    () => claimsOf({ c: "x".repeat(4088) }),
    () => claimsOf({ c: "x".repeat(4089) }),
    /claims: is longer than 4096 bytes/,
  ],
  [
    "methods",
    () => authentication({ amr: many(8) }),
    () => authentication({ amr: many(9) }),
    /amr: has more than 8 items/,
  ],
  [
    "a method",
    () => authentication({ amr: ["m".repeat(32)] }),
    () => authentication({ amr: ["m".repeat(33)] }),
    /amr: is longer/,
  ],
  [
    "methods with text",
    () => authentication({ amr: ["pwd"] }),
    () => authentication({ amr: [""] }),
    /amr: has an empty item/,
  ],
  [
    "a context",
    () => authentication({ acr: "a".repeat(255) }),
    () => authentication({ acr: "a".repeat(256) }),
    /acr: is longer/,
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
    "an id",
    () => sessionIdOf("id", "AAECAwQFBgcICQoLDA0ODxA"),
    () => sessionIdOf("id", "AAECAwQFBgcICQoLDA0ODxA "),
    /id: is not a session id/,
  ],
  [
    "an id that is there",
    () => sessionIdOf("id", "AAECAwQFBgcICQoLDA0ODxA"),
    () => sessionIdOf("id", ""),
    /id: is required/,
  ],
  ["a subject that is there", () => subjectOf("s"), () => subjectOf(""), /subject: is required/],
])("%s: the last that is good, and the first that is not", (_, good, bad, message) => {
  expect(good).not.toThrow();
  expect(bad).toThrow(message);
});

test("what a request does not say has its default", () => {
  expect(pageSizeOf(0)).toBe(20);
  expect(pageSizeOf(1)).toBe(1);
  expect(durationOf("d", undefined, 9000)).toBe(9000);
  expect(audienceOf("", [], "ours")).toBe("ours");
  expect(claimsOf(undefined)).toBe("{}");
  expect(authentication({})).toBeUndefined();
});

test("an audience alone is a text, several are a list", () => {
  expect(audienceOf("", ["a"], "ours")).toBe("a");
  expect(audienceOf("", ["a", "b"], "ours")).toEqual(["a", "b"]);
});

test("fractions of durations are cut to milliseconds, those of a time are rounded up to them", () => {
  expect(durationOf("d", lasting(1, 500_999_999), 9000)).toBe(1500);
  expect(timeAfter({ ...at(NOW), nanos: 1 })).toBe(NOW + 1);
  expect(timeAfter(at(NOW))).toBe(NOW);
  expect(authentication({ authTime: at(NOW - 1) })?.time).toBe(NOW - 1000);
});

test.each([{ n: Number.POSITIVE_INFINITY }, { a: [1, { b: Number.NaN }] }, { "\ud800": 1 }, { a: ["x\udc00"] }])(
  "claims that JSON cannot hold are refused: %j",
  (claims) => {
    expect(() => claimsOf(claims as never)).toThrow(/claims: has/);
  },
);
