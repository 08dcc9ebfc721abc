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

test("about other responses the application decides", async () => {
  expect(await forCdns([])).toBeNull();
});
