import { expect, test } from "vitest";
import { InvalidCursor } from "../../../src/service/session/ports.ts";
import { parsePosition } from "../../../src/service/store/search.ts";

const SID = "A".repeat(23);

test("a page token is a position, and nothing before or after it", () => {
  expect(parsePosition(`1800000000000.${SID}`)).toEqual({ createdAt: 1_800_000_000_000, sid: SID });
  for (const text of [
    `1.${SID}x`,
    `1.${SID}\n`,
    `x1.${SID}`,
    ` 1.${SID}`,
    `1.${SID}.`,
    `1${SID}`,
    `${"1".repeat(16)}.${SID}`,
  ]) {
    expect(() => parsePosition(text), JSON.stringify(text)).toThrow(InvalidCursor);
  }
});
