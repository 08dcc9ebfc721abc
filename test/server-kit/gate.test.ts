/** The headers that the session adds to an application's response. */
import { expect, test } from "vitest";
import { addResponseHeaders } from "../../src/server-kit/gate.ts";

function withHeaders(own: Record<string, string>, setCookies: readonly string[] = []) {
  const responseHeaders = new Headers({ vary: "Cookie", "cache-control": "private, no-store" });
  for (const cookie of setCookies) responseHeaders.append("set-cookie", cookie);
  const headers = new Headers(own);
  addResponseHeaders(headers, { user: { state: "ended" }, setCookies, responseHeaders, forward: new Headers() });
  return headers;
}

test("the headers by which the application's response varies are kept", () => {
  expect(withHeaders({ vary: "Accept" }).get("vary")).toBe("Accept, Cookie");
});

test("the application decides about caches, unless the response sets a cookie", () => {
  const own = { "cache-control": "public" };
  expect(withHeaders(own).get("cache-control")).toBe("public");
  expect(withHeaders(own, ["a=1"]).get("cache-control")).toBe("private, no-store");
});

test("the application's own cookies come last", () => {
  expect(withHeaders({ "set-cookie": "own=1" }, ["a=1"]).getSetCookie()).toEqual(["a=1", "own=1"]);
});
