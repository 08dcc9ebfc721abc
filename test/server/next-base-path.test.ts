/** The adapter for Next.js below a `basePath`, with the requests and responses of Next.js itself. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createServerSessions } from "../../src/server/index.ts";
import { sessionProxy } from "../../src/server/next.ts";

const require = createRequire(join(import.meta.dirname, "../dependencies/frameworks/package.json"));
const { NextRequest, NextResponse } = require("next/server");
const { unstable_doesMiddlewareMatch } = require("next/experimental/testing/server");

const nextConfig = { basePath: "/app" };
// Requests without cookies have no session, so the kit calls neither the service nor the verifier.
const sessions = createServerSessions({
  service: "http://127.0.0.1:9",
  verifier: { verify: () => Promise.reject(new Error("there is no token")) },
});
const proxy = sessionProxy(sessions, NextResponse, { isPublic: (path) => path === "/" || path === "/open" });

test.each([
  ["/app", null],
  ["/app?tab=2", null],
  ["/app/open", null],
  ["/app/login?next=%2F", null],
  ["/app/account?tab=2", "/app/login?next=%2Faccount%3Ftab%3D2"],
  ["/app//other.example", "/app/login?next=%2F"],
  ["/app/app/open", "/app/login?next=%2Fapp%2Fopen"],
])("of a stranger, %s leads to %s: paths are those that redirect() takes", async (path, location) => {
  const request = new NextRequest(`https://shop.example${path}`, { headers: { accept: "text/html" }, nextConfig });
  const response = await proxy(request);
  expect(response.headers.get("location")).toBe(location && `https://shop.example${location}`);
});

test("a server action leads to the login as one that calls redirect()", async () => {
  const headers = { "next-action": "40c0ffee", "sec-fetch-site": "same-origin" };
  const request = new NextRequest("https://shop.example/app/account?tab=2", { method: "POST", headers, nextConfig });
  const response = await proxy(request);
  const location = response.headers.get("x-action-redirect");
  expect([response.status, location]).toEqual([303, "/login?next=%2Faccount%3Ftab%3D2"]);
});

test.each(["examples/next/proxy.ts", "src/server/next.ts"])("the matcher of %s includes the home page", (file) => {
  const [, matcher = ""] = /matcher: (\[.*\]) \};/.exec(readFileSync(file, "utf8")) ?? [];
  const config = { matcher: JSON.parse(matcher) };
  for (const url of ["/app", "/app/account"])
    expect(unstable_doesMiddlewareMatch({ config, nextConfig, url })).toBe(true);
  expect(unstable_doesMiddlewareMatch({ config, nextConfig: {}, url: "/" })).toBe(true);
  expect(unstable_doesMiddlewareMatch({ config, nextConfig, url: "/app/_next/static/a.js" })).toBe(false);
});
