/** The function that protects pages (the gate), and the headers that the session adds to an application's response. */
import { expect, test } from "vitest";
import { addResponseHeaders, createGate } from "../../src/server-kit/gate.ts";
import { createServerSessions } from "../../src/server-kit/index.ts";

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

// Requests without cookies have no session, so the kit calls neither the service nor the verifier.
const sessions = createServerSessions({
  service: "http://127.0.0.1:9",
  verifier: { verify: () => Promise.reject(new Error("there is no token")) },
});
const page = (url: string) => ({ method: "GET", url, headers: new Headers({ accept: "text/html" }) });

test.each([
  ["/", 303],
  ["/login", undefined],
  ["/login/", undefined],
  ["/login/../account", 303],
  ["/about", undefined],
  ["/About", undefined],
  ["/about/../account", 303],
  ["/about/private", 303],
  ["/about%2Fprivate", 303],
  ["/%", 400],
  ["/about/%ff", 400],
])("of a stranger, a request for %s: %s", async (url, expected) => {
  const isPublic = (path: string) => path.toLowerCase().startsWith("/about");
  const gate = createGate(sessions, { isPublic, isProtected: (path) => path === "/about/private" });
  expect((await gate(page(url))).response?.status).toBe(expected);
});

test("without options, only the login is public", async () => {
  const gate = createGate(sessions);
  const statuses = ["/", "/about", "/login"].map(async (url) => (await gate(page(url))).response?.status);
  expect(await Promise.all(statuses)).toEqual([303, 303, undefined]);
});

test("isProtected alone, which protected all that it named, is refused with the way to write it", () => {
  expect(() => createGate(sessions, { isProtected: () => true })).toThrow("isProtected needs isPublic");
});

test("a path as the framework has read it counts beside the path as it was sent", async () => {
  const gate = createGate(sessions, { isPublic: (path) => path.startsWith("/open") });
  expect((await gate(page("/open/x"), undefined, "/account")).response?.status).toBe(303);
});

test.each([
  [{ origin: "https://app.example", "sec-fetch-site": "same-origin" }, undefined],
  [{ origin: "https://app.example" }, undefined],
  [{}, undefined],
  [{ origin: "https://listed.example", "sec-fetch-site": "same-site" }, undefined],
  [{ origin: "https://sibling.app.example", "sec-fetch-site": "same-site" }, 403],
  [{ origin: "https://evil.example" }, 403],
])("the handshake of a WebSocket with %j: %s", async (headers, expected) => {
  const gate = createGate(sessions, { isPublic: () => true, origins: ["https://listed.example"] });
  const handshake = { host: "app.example", connection: "Upgrade", upgrade: "websocket", ...headers };
  const request = { method: "GET", url: "/socket", headers: new Headers(Object.entries(handshake)) };
  expect((await gate(request)).response?.status).toBe(expected);
});
