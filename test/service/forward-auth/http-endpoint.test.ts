import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { createCheck } from "../../../src/service/forward-auth/check.ts";
import { createHttpEndpoint, isCheck } from "../../../src/service/forward-auth/http-endpoint.ts";
import { Outcomes } from "../../../src/service/forward-auth/outcomes.ts";
import type { Claims } from "../../../src/verifier/index.ts";
import { request } from "../../support/raw-http.ts";

test.each([
  ["/check", true],
  ["/check/a", true],
  ["/check?a", true],
  ["/checks", false],
  ["/a/check", false],
  ["/", false],
  [undefined, false],
])("whether a path is that of the check: %s is %s", (url, expected) => {
  expect(isCheck(url)).toBe(expected);
});

/** Serves an endpoint whose verifier accepts every token, with the token itself as the subject. */
async function serveAccepting(): Promise<string> {
  const verify = async (token: string) =>
    ({ ok: true, deviceBound: false, claims: { sub: token, sid: "s", client_id: "c" } as Claims }) as const;
  const check = createCheck({ verify, verifyBound: verify }, { cookie: "access_token" });
  const server = createServer(createHttpEndpoint(check, new Outcomes(), () => {}));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test("two headers `Authorization` are refused: the upstream may read the other one", async () => {
  const url = await serveAccepting();
  const check = async (...authorization: string[]) => {
    const { status, headers } = await request(url, { path: "/check", headers: { authorization } });
    return [status, headers.get("x-auth-subject"), headers.get("x-auth-reason")];
  };
  expect(await check("Bearer a")).toEqual([200, "a", null]);
  expect(await check("Bearer a", "Bearer b")).toEqual([401, null, "malformed"]);
});

test.each([
  ["sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="],
  ["upgrade", "websocket"],
])("a WebSocket is known by %s, and none of another site passes", async (name, value) => {
  const url = await serveAccepting();
  const statusOf = async (site: string) => {
    const headers = { cookie: "access_token=a", "sec-fetch-site": site, "x-forwarded-method": "GET", [name]: value };
    return (await request(url, { path: "/check", headers })).status;
  };
  expect([await statusOf("same-site"), await statusOf("cross-site")]).toEqual([403, 403]);
  expect(await statusOf("same-origin")).toBe(200);
});

test("a request whose method no header names has that of the check, unless it is safe", async () => {
  const url = await serveAccepting();
  const statusOf = async (method: string, site: string, named: Readonly<Record<string, string>> = {}) => {
    const headers = { cookie: "access_token=a", "sec-fetch-site": site, ...named };
    return (await request(url, { method, path: "/check/orders", headers })).status;
  };
  expect(await statusOf("POST", "cross-site")).toBe(403);
  expect(await statusOf("DELETE", "same-site")).toBe(403);
  expect(await statusOf("POST", "same-origin")).toBe(200);
  expect(await statusOf("GET", "cross-site")).toBe(200);
  expect(await statusOf("POST", "cross-site", { "x-forwarded-method": "GET" })).toBe(200);
  expect(await statusOf("GET", "cross-site", { "x-forwarded-method": "POST" })).toBe(403);
});
