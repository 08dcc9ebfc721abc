/** A page that asks for its user itself. */
import { expect, test } from "vitest";
import { requireUser, SessionError, type User } from "../../src/server/index.ts";

const ACTIVE = { state: "active", claims: { sub: "alice", sid: "s", exp: 1 }, accessToken: "t" } as const;

test("the user of an active session is returned", () => {
  expect(requireUser(ACTIVE).claims.sub).toBe("alice");
});

test.each([
  ["ended", 401],
  ["unavailable", 503],
] as const)("a user whose state is %s: an error with the status %i", (state, status) => {
  expect(() => requireUser({ state })).toThrow(
    expect.objectContaining({ state, status, statusCode: status, digest: `session_${state}` }),
  );
  expect(() => requireUser({ state })).toThrow(SessionError);
});

test("the message says that nobody is signed in, that nothing is known, or that an adapter is missing", () => {
  const messageOf = (user: User) => {
    try {
      return requireUser(user);
    } catch (error) {
      return (error as Error).message;
    }
  };
  expect(messageOf({ state: "ended" })).toBe("nobody is signed in");
  expect(messageOf({ state: "unavailable" })).toBe("the session service cannot be reached");
  expect(messageOf({ state: "unavailable", reason: "adapter_missing" })).toMatch("adapter did not run");
});

test("the application refuses in its own way", () => {
  const redirect = ({ state }: SessionError): never => {
    throw new Error(`to the login, because ${state}`);
  };
  expect(() => requireUser({ state: "ended" }, redirect)).toThrow("to the login, because ended");
});
