import { expect, test } from "vitest";
import { errorCode } from "../../../src/platform/files/error-code.ts";

test("an error of the file system is named by its code, any other is unknown", () => {
  expect(errorCode(Object.assign(new Error("text"), { code: "ENOENT" }))).toBe("ENOENT");
  expect([new Error("text"), { code: "ENOENT" }, "ENOENT", undefined].map(errorCode)).toEqual(
    Array.from({ length: 4 }, () => "unknown"),
  );
});
