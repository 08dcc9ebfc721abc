/** Requests that no browser sends: those that frameworks make themselves, while they build an application or render a page. */
import { expect, test } from "vitest";
import { sessionMiddleware } from "../../src/server/astro.ts";
import { createServerSessions } from "../../src/server/index.ts";
import { sessionHandle } from "../../src/server/sveltekit.ts";

// Requests without cookies have no session, so the kit calls neither the service nor the verifier.
const sessions = createServerSessions({
  service: "http://127.0.0.1:9",
  verifier: { verify: () => Promise.reject(new Error("there is no token")) },
});
const isPublic = () => true;
const rendered = async () => new Response("page");
const noAddress = (): string => {
  throw new Error("Cannot read `clientAddress` during prerendering");
};

/** Passes a request to the kit's hook for SvelteKit. SvelteKit does not know the client's address for it. */
function inSvelteKit(request: Request, isSubRequest: boolean): Promise<Response> {
  const url = new URL(request.url);
  const event = { request, url, isDataRequest: false, isSubRequest, locals: {}, getClientAddress: noAddress };
  return sessionHandle(sessions, { isPublic })({ event, resolve: rendered });
}

test("SvelteKit prerenders pages, and so knows no address", async () => {
  expect(await (await inSvelteKit(new Request("http://sveltekit-prerender/about"), false)).text()).toBe("page");
});

test("Astro knows no address with some of its adapters", async () => {
  const request = new Request("https://app.example/");
  const url = new URL(request.url);
  const context = {
    request,
    url,
    locals: {},
    isPrerendered: false,
    get clientAddress() {
      return noAddress();
    },
  };
  expect(await (await sessionMiddleware(sessions, { isPublic })(context, rendered)).text()).toBe("page");
});

test("a load function of SvelteKit posts to the application itself by event.fetch", async () => {
  const post = { method: "POST", headers: { origin: "https://app.example" } };
  expect((await inSvelteKit(new Request("https://app.example/api", post), true)).status).toBe(200);
  expect((await inSvelteKit(new Request("https://app.example/api", post), false)).status).toBe(403);
});
