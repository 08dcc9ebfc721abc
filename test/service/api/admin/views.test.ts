import { expect, test } from "vitest";
import { RevocationReasonSchema, TokenTypeSchema } from "../../../../gen/auth/admin/v1/session_admin_pb.ts";
import { REVOCATION_REASONS, TOKEN_TYPES } from "../../../../src/service/api/admin/views.ts";

test.each([
  ["REVOCATION_REASON_", RevocationReasonSchema, REVOCATION_REASONS],
  ["TOKEN_TYPE_", TokenTypeSchema, TOKEN_TYPES],
] as const)(
  "%s*: every value but UNSPECIFIED is the text of the string field in upper case",
  (prefix, type, values) => {
    const names = Object.entries(values).map(([text, number]) => [`${prefix}${text.toUpperCase()}`, number]);
    const declared = type.values.filter(({ number }) => number !== 0).map(({ name, number }) => [name, number]);
    expect(names.toSorted()).toEqual(declared.toSorted());
  },
);
