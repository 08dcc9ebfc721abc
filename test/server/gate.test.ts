/** The function that protects pages (the gate), and the headers that the session adds to an application's response. */
import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { addResponseHeaders, createGate, withResponseHeaders } from "../../src/server/gate.ts";
import { createServerSessions, perProcess, type ServerSessionsEvent } from "../../src/server/index.ts";

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
  expect(withHeaders({ "set-cookie": "own=1" }, ["a=1", "b=2"]).getSetCookie()).toEqual(["a=1", "b=2", "own=1"]);
});

test("a response that cannot be copied, as to the handshake of a WebSocket, stays as it is", () => {
  const responseHeaders = new Headers({ vary: "Cookie" });
  const authentication = { user: { state: "ended" }, setCookies: [], responseHeaders, forward: new Headers() } as const;
  const uncopied = Response.error(); // Its status is below 200 as well.
  expect(withResponseHeaders(uncopied, authentication)).toBe(uncopied);
  expect(withResponseHeaders(new Response("page"), authentication).headers.get("vary")).toBe("Cookie");
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
  [`/about/${"%25".repeat(20_000)}`, 400],
])("of a stranger, a request for %s: %s", async (url, expected) => {
  const isPublic = (path: string) => path.toLowerCase().startsWith("/about");
  const gate = createGate(sessions, { isPublic, isProtected: (path) => path === "/about/private" });
  expect((await gate(page(url))).response?.status).toBe(expected);
});

const HTML = { accept: "text/html" };
const OF_LINK = { "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate" };
test.each([
  ["GET", HTML, 303],
  ["HEAD", HTML, 303],
  ["POST", HTML, 401],
  ["GET", { "sec-fetch-mode": "navigate" }, 303],
  ["GET", OF_LINK, 303],
  ["GET", { "sec-fetch-mode": "cors" }, 401],
  ["GET", { accept: "application/json" }, 401],
])("of a stranger, %s with %j: %i, and a navigation leads to the login and back", async (method, headers, status) => {
  const { response } = await createGate(sessions)({ method, url: "/a?b", headers: new Headers(headers) });
  expect(response?.status).toBe(status);
  expect(response?.headers.get("location")).toBe(status === 303 ? "/login?next=%2Fa%3Fb" : null);
});

/** Creates a kit, and the events that it reports. */
function reporting(verdict: { readonly ok: false; readonly reason: string }) {
  const events: ServerSessionsEvent[] = [];
  const report = (event: ServerSessionsEvent) => {
    events.push(event);
    throw new Error("the log is full");
  };
  const verifier = { verify: async () => verdict };
  return { events, kit: createServerSessions({ service: "http://127.0.0.1:9", verifier, report }) };
}

const call = (url: string, headers = {}, method = "GET") => ({ method, url, headers: new Headers(headers) });

test.each([
  [call("/orders/7?key=secret"), 401, "E001_AUTH_FAILURE", { path: "/orders/7", reading: "/orders/7" }],
  [call("/open%2f..%2forders"), 401, "E001_AUTH_FAILURE", { path: "/open%2f..%2forders", reading: "/orders" }],
  [call("/orders", { cookie: "access_token=a" }), 503, "E503_UNAVAILABLE", { path: "/orders", reading: "/orders" }],
  [call("/orders", { "sec-fetch-site": "cross-site" }, "POST"), 403, "E403_FORBIDDEN", { path: "/orders" }],
  [call("/%ff"), 400, "E400_INVALID_REQUEST", { path: "/%ff" }],
])("an API without pages refuses %j with %i, an error in JSON, and a report", async (request, status, code, found) => {
  const { kit, events } = reporting({ ok: false, reason: "unavailable" });
  const gate = createGate(kit, { login: false, isPublic: (path) => path.startsWith("/open") });
  const { response, authentication } = await gate(request);
  expect([response?.status, await response?.json()]).toMatchObject([status, { error: { code } }]);
  expect(response?.headers.get("retry-after")).toBe(status === 503 ? "1" : null);
  expect(authentication).toMatchObject({ user: { state: status === 401 ? "ended" : "unavailable" }, setCookies: [] });
  expect(events).toEqual([{ event: "request_refused", status, method: request.method, ...found }]);
});

test("where there is a login, a page whose user cannot be determined reaches the application, which says so", async () => {
  const { kit, events } = reporting({ ok: false, reason: "unavailable" });
  const passage = await createGate(kit)(call("/orders", { cookie: "access_token=a", ...HTML }));
  expect(passage).toMatchObject({ authentication: { user: { state: "unavailable" }, setCookies: [] } });
  expect([passage.response, events]).toEqual([undefined, []]);
});

test("an API without pages responds to a navigation as to a script, and may bring its own errors", async () => {
  const { kit } = reporting({ ok: false, reason: "expired" });
  const refuse = ({ status }: { readonly status: number }) =>
    Response.json({ title: "no" }, { status, headers: { "content-type": "application/problem+json" } });
  const { response } = await createGate(kit, { login: false, refuse })(page("/login"));
  expect([response?.status, response?.headers.get("content-type")]).toEqual([401, "application/problem+json"]);
  expect(response?.headers.get("cache-control")).toBe("private, no-store");
});

test("a path in a report is bounded", async () => {
  const { kit, events } = reporting({ ok: false, reason: "expired" });
  await createGate(kit)(call(`/${"a".repeat(5_000)}`));
  expect(events).toMatchObject([{ path: `/${"a".repeat(199)}`, reading: `/${"a".repeat(199)}` }]);
});

test("a kit that a function returns is created with the first request, once in a process", async () => {
  let created = 0;
  // The value outlives the test, so a name that was used before would find that of an earlier run in this process.
  const name = randomUUID();
  const getSessions = () =>
    perProcess(name, () => {
      created++;
      return sessions;
    });
  const gates = [createGate(getSessions()), createGate(getSessions())];
  expect(created).toBe(0);
  for (const gate of gates) expect((await gate(page("/account"))).response?.status).toBe(303);
  expect(created).toBe(1);
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
  expect((await gate(page("/open/x"), undefined, { routed: "/account" })).response?.status).toBe(303);
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
