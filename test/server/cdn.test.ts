/** Caches in front of Next.js. Its pages router lets an application replace `Cache-Control`, so the kit sets a header for CDNs as well. */
import { expect, test } from "vitest";
import type { ServerSessions } from "../../src/server/index.ts";
import { sessionProxy } from "../../src/server/next.ts";

/** Returns the header for CDNs in a response that sets these cookies. */
async function forCdns(setCookies: readonly string[]): Promise<string | null> {
  const sessions = {
    authenticate: async () => ({
      user: { state: "ended" } as const,
      setCookies,
      responseHeaders: new Headers(),
      forward: new Headers(),
    }),
  } satisfies Pick<ServerSessions, "authenticate">;
  const kit = sessions as Partial<ServerSessions> as ServerSessions;
  const proxy = sessionProxy(kit, { next: () => new Response() }, { isPublic: () => true });
  return (await proxy(new Request("https://app.example/"))).headers.get("cdn-cache-control");
}

test("a CDN keeps no response that renews the session", async () => {
  expect(await forCdns(["refresh_token=a"])).toBe("no-store");
});

/** Passes a request to the kit's proxy for Next.js. */
async function inNext(path: string, state: "active" | "ended", headers = {}, method = "GET") {
  const user = state === "active" ? { state, claims: { sub: "a", sid: "s", exp: 1 }, accessToken: "t" } : { state };
  const sessions: Pick<ServerSessions, "authenticate" | "report"> = {
    authenticate: async () => ({
      ...{ user, setCookies: [], responseHeaders: new Headers({ vary: "Cookie" }) },
      forward: new Headers({ "x-session-state": state }),
    }),
    report: () => {},
  };
  const passed: Headers[] = [];
  const next = ({ request }: { readonly request: { readonly headers: Headers } }) => {
    passed.push(request.headers);
    return new Response();
  };
  const proxy = sessionProxy(sessions as ServerSessions, { next });
  const response = await proxy(new Request(`https://app.example${path}`, { method, headers }));
  return { response, passed };
}

test.each([
  ["a page", {}, "GET", 303],
  ["a page that a script loads", { accept: "*/*" }, "GET", 303],
  ["a call for JSON", { accept: "application/json" }, "GET", 401],
  ["a call that changes something", { "sec-fetch-site": "same-origin" }, "POST", 401],
])("Next.js: of a stranger, %s %j by %s: %i", async (_, headers, method, status) => {
  const { response, passed } = await inNext("/a", "ended", headers, method);
  expect([response.status, passed]).toEqual([status, []]);
  expect(response.headers.get("location")).toBe(status === 303 ? "https://app.example/login?next=%2Fa" : null);
});

test("Next.js: a user's page renders with the headers of the kit, and so does its response", async () => {
  const { response, passed } = await inNext("/a", "active");
  expect([response.status, response.headers.get("vary")]).toEqual([200, "Cookie"]);
  expect(passed.map((headers) => headers.get("x-session-state"))).toEqual(["active"]);
});

test("about other responses the application decides", async () => {
  expect(await forCdns([])).toBeNull();
});
