import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import {
  errorCodeOf,
  faultOfCaller,
  rateLimited,
  SHARED_ERRORS,
  toConnectError,
} from "../../../../src/service/api/errors/connect-errors.ts";
import { ERRORS, type ErrorCode, invalidRequest, ServiceError } from "../../../../src/service/session/errors.ts";
import { StoreUnavailable } from "../../../../src/service/session/ports.ts";

const noBug = (error: unknown) => {
  throw error;
};

test.each(Object.keys(ERRORS) as ErrorCode[])("%s becomes its Connect code with its detail and its text", (code) => {
  const error = toConnectError(new ServiceError(code), noBug);
  expect(errorCodeOf(error)).toBe(code);
  expect(Code[error.code]?.toLowerCase()).toBe(ERRORS[code].rpc.replaceAll("_", ""));
  expect(error.rawMessage).toBe(ERRORS[code].message);
});

test.each<[ErrorCode, string, string]>([
  ["E001_AUTH_FAILURE", "www-authenticate", "Bearer"],
  ["E429_RATE_LIMITED", "retry-after", "1"],
  ["E503_UNAVAILABLE", "retry-after", "1"],
])("%s carries %s: %s", (code, header, value) => {
  expect(toConnectError(new ServiceError(code), noBug).metadata.get(header)).toBe(value);
});

test("a bad access token is named as the cause, an absent one is not", () => {
  const header = (error: Error) => toConnectError(error, noBug).metadata.get("www-authenticate");
  expect(header(SHARED_ERRORS.invalidToken)).toBe('Bearer error="invalid_token"');
  expect(header(SHARED_ERRORS.noCredential)).toBe("Bearer");
});

test.each([
  [1, "1"],
  [999, "1"],
  [1_000, "1"],
  [1_001, "2"],
  [30_000, "30"],
])("over a limit for %i ms: retry after %s s", (ms, seconds) => {
  const error = rateLimited(ms);
  expect(errorCodeOf(error)).toBe("E429_RATE_LIMITED");
  expect([error.code, error.rawMessage]).toEqual([Code.ResourceExhausted, ERRORS.E429_RATE_LIMITED.message]);
  expect(error.metadata.get("retry-after")).toBe(seconds);
  expect(rateLimited(ms)).toBe(error);
});

test("a bad request names its field", () => {
  expect(toConnectError(invalidRequest("subject", "is required"), noBug).rawMessage).toBe("subject: is required");
});

test("a store that cannot reply is unavailable, and its own text stays inside", () => {
  const error = toConnectError(new StoreUnavailable("connect ECONNREFUSED 10.0.0.1:6379"), noBug);
  expect([errorCodeOf(error), error.rawMessage]).toEqual(["E503_UNAVAILABLE", ERRORS.E503_UNAVAILABLE.message]);
});

test("what has been translated stays as it is", () => {
  const error = toConnectError(new ServiceError("E404_NOT_FOUND"), noBug);
  expect(toConnectError(error, noBug)).toBe(error);
});

describe("an unforeseen error is reported as a bug, once, and its text does not reach the caller", () => {
  test.each([
    ["an error", new Error("the password is hunter2")],
    ["a text", "hunter2"],
    ["nothing", undefined],
    ["an error of Connect's that has no place in the table", new ConnectError("hunter2", Code.DataLoss)],
    ["an internal error of Connect's", new ConnectError("hunter2", Code.Internal)],
  ])("%s", (_, thrown) => {
    const bugs: unknown[] = [];
    const error = toConnectError(thrown, (bug) => bugs.push(bug));
    expect(bugs).toEqual([thrown]);
    expect([errorCodeOf(error), error.code, error.rawMessage]).toEqual([
      "E500_INTERNAL",
      Code.Internal,
      "internal error",
    ]);
    expect(JSON.stringify([...error.metadata])).not.toContain("hunter2");
    expect(error.cause).toBeUndefined();
  });
});

describe("an error while the message is read is the caller's, by where it was raised", () => {
  test.each([
    [Code.Internal, "E400_INVALID_REQUEST"],
    [Code.Unknown, "E400_INVALID_REQUEST"],
    [Code.Unimplemented, "E400_INVALID_REQUEST"],
    [Code.InvalidArgument, "E400_INVALID_REQUEST"],
    [Code.ResourceExhausted, "E413_TOO_LARGE"],
    [Code.Canceled, "E499_CANCELED"],
    [Code.DeadlineExceeded, "E504_DEADLINE_EXCEEDED"],
  ])("code %i: %s", (code, expected) => {
    expect(errorCodeOf(faultOfCaller(new ConnectError("whatever its text", code)))).toBe(expected);
  });

  test("what has no code at all", () => {
    expect(errorCodeOf(faultOfCaller(new TypeError("of the library")))).toBe("E400_INVALID_REQUEST");
  });
});
