import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  challengeValue,
  readSessionId,
  readSkipped,
  registrationValue,
} from "../../../../src/service/api/public/device-headers.ts";
import type { SessionId } from "../../../../src/service/session/model.ts";

const SID = "AAECAwQFBgcICQoLDA0ODxA" as SessionId;

describe("what the service sends", () => {
  test("offers both algorithms, a path and a challenge", () => {
    expect(registrationValue("c-1_")).toBe('(ES256 RS256);path="/v1/auth/device";challenge="c-1_"');
  });

  test("names the session of a challenge", () => {
    expect(challengeValue("c-1_", SID)).toBe(`"c-1_";id="${SID}"`);
  });
});

describe("the session id of a renewal", () => {
  test("is a string, with whatever parameters", () => {
    for (const value of [`"${SID}"`, ` "${SID}" `, `"${SID}";x=1`, SID]) expect(readSessionId(value)).toBe(SID);
  });

  test("is undefined when absent, malformed, doubled or too long", () => {
    for (const value of [
      null,
      "",
      '"',
      `"${SID}`,
      `"${SID}", "${SID}"`,
      "1",
      "?1",
      ":AA==:",
      `"${"a".repeat(1100)}"`,
    ]) {
      expect([value, readSessionId(value)]).toEqual([value, undefined]);
    }
  });
});

describe("skipped renewals", () => {
  test("are the sessions in a list of reasons", () => {
    expect(readSkipped(`unreachable;session_identifier="${SID}"`)).toEqual([SID]);
    const two = `quota_exceeded;session_identifier=${SID}, server_error;session_identifier="b";x`;
    expect(readSkipped(two)).toEqual([SID, "b"]);
    expect(readSkipped("unreachable")).toEqual([]);
  });

  test("are none when absent, malformed or too long", () => {
    for (const value of [
      null,
      "",
      ",",
      "unreachable,",
      '"unreachable"',
      "(a b)",
      "1",
      "unreachable;=",
      "a".repeat(1100),
    ]) {
      expect([value, readSkipped(value)]).toEqual([value, []]);
    }
  });

  test("never throw, whatever the text", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => {
        expect(Array.isArray(readSkipped(text))).toBe(true);
        expect(["string", "undefined"]).toContain(typeof readSessionId(text));
      }),
    );
  });
});
