/** What a caller learns of an error. */
import { expect, test } from "vitest";
import { ERRORS, invalidFields, invalidRequest, ServiceError } from "../../../src/service/session/errors.ts";

test("an error has the public text of its code, and names no field", () => {
  const cause = new Error("not public");
  const error = new ServiceError("E404_NOT_FOUND", undefined, { cause });
  expect(error).toMatchObject({ code: "E404_NOT_FOUND", message: ERRORS.E404_NOT_FOUND.message, cause });
  expect(error.fieldViolations).toEqual([]);
  expect(new ServiceError("E409_CONFLICT").fieldViolations).toEqual([]);
});

test("an invalid request names each field that breaks a rule, and what is wrong with the request as a whole", () => {
  const violations = [
    { field: "client.user_agent", description: "too long", ruleId: "string.max_len" },
    { field: "", description: "one of two is required", ruleId: "" },
  ];
  expect(invalidFields(violations)).toMatchObject({
    ...{ code: "E400_INVALID_REQUEST", fieldViolations: violations },
    message: "client.user_agent: too long; one of two is required",
  });
  expect(invalidRequest("subject", "missing")).toMatchObject({
    ...{ code: "E400_INVALID_REQUEST", message: "subject: missing" },
    fieldViolations: [{ field: "subject", description: "missing", ruleId: "" }],
  });
});
