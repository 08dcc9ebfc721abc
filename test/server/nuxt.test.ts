/** The adapter for Nuxt: what h3 takes from it, and what Nuxt asks of it below `app.baseURL` and for its error page. */
import { once } from "node:events";
import { createServer, IncomingMessage, ServerResponse } from "node:http";
import { createRequire } from "node:module";
import { type AddressInfo, Socket } from "node:net";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { GateOptions, User } from "../../src/server/index.ts";
import { sessionHandler } from "../../src/server/nuxt.ts";
import { aService } from "../support/every-protocol.ts";
import { aServer, aVerifier, COOKIES } from "./world.ts";

const service = aService(COOKIES);
const kept = aVerifier(service);

test("the kit's own response is returned: h3 2 calls the next handler after one that returns nothing", async () => {
  const handler = sessionHandler(aServer(service, kept.verifier).sessions);
  const req = new IncomingMessage(new Socket());
  const res = new ServerResponse(req);
  Object.assign(req, { method: "GET", url: "/account", headers: { accept: "text/html" } });
  const own = await handler({ node: { req, res }, context: {} });
  expect([own?.status, own?.headers.get("location")]).toEqual([303, "/login?next=%2Faccount"]);
  expect(res.headersSent).toBe(false);
});

// biome-ignore lint/suspicious/noExplicitAny: the types of the packages are not installed
const framework = (name: string): any =>
  createRequire(join(import.meta.dirname, "../dependencies/frameworks/package.json"))(name);

/**
 * Starts an application that h3 serves as Nuxt has it do: handlers run below a base, and the page for an error is fetched from the
 * application itself. Returns what a stranger gets for each path.
 */
async function getLikeNuxt(base: string, options: GateOptions, paths: readonly string[]): Promise<unknown[]> {
  const { createApp, createError, eventHandler, send, setResponseHeaders, setResponseStatus, toNodeListener } =
    framework("h3");
  const { fetchNodeRequestHandler } = framework("node-mock-http");
  type Event = { readonly path: string; readonly context: { nitro?: object; user?: User } };
  const app = createApp({
    onRequest({ context }: Event) {
      context.nitro ??= {};
    },
    async onError(error: { readonly statusCode: number }, event: Event) {
      const page: Response = await fetchNodeRequestHandler(listener, `${base}/__nuxt_error?statusCode=404`, PAGE);
      setResponseHeaders(event, Object.fromEntries(page.headers));
      setResponseStatus(event, page.status === 200 ? error.statusCode : page.status);
      return send(event, await page.text());
    },
  });
  app.use(`${base}/`, sessionHandler(aServer(service, kept.verifier).sessions, options));
  const render = ({ path, context }: Event) => {
    if (path === "/open/none") throw createError({ statusCode: 404 });
    return `${path} of ${context.user?.state}`;
  };
  app.use(base || "/", eventHandler(render));
  const listener = toNodeListener(app);
  const server = createServer(listener).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  try {
    const responses: unknown[] = [];
    for (const path of paths) {
      const response = await fetch(`http://127.0.0.1:${port}${path}`, { ...PAGE, redirect: "manual" });
      responses.push([response.status, response.headers.get("location") ?? (await response.text())]);
    }
    return responses;
  } finally {
    server.close();
  }
}

const PAGE = { headers: { accept: "text/html" } };
const OPEN = { isPublic: (path: string) => path === "/" || path.startsWith("/open") };

test("below app.baseURL, paths are without it, and the login is below it, too", async () => {
  expect(
    await getLikeNuxt("/app", OPEN, ["/app", "/app?a", "/app/", "/app/open", "/app/account?tab=2", "/app/login"]),
  ).toEqual([
    ...[
      [200, "/ of ended"],
      [200, "?a of ended"],
      [200, "/ of ended"],
      [200, "/open of ended"],
    ],
    [303, "/app/login?next=%2Faccount%3Ftab%3D2"],
    [200, "/login of ended"],
  ]);
  const closed = await getLikeNuxt("/app", {}, ["/app", "/app?a"]);
  expect(closed).toEqual([
    [303, "/app/login?next=%2F"],
    [303, "/app/login?next=%2F%3Fa"],
  ]);
});

test("an encoded base leads past no protection", async () => {
  const isProtected = (path: string) => path.startsWith("/account");
  const paths = ["/%6d%79/app/account", "/my/%61pp/account", "/%6dy/app/open"];
  const responses = await getLikeNuxt("/my/app", { isPublic: () => true, isProtected }, paths);
  expect(responses.map((response) => (response as unknown[])[0])).toEqual([303, 303, 200]);
});

test.each(["", "/app"])("the error of a public page is displayed to a stranger (base %j)", async (base) => {
  expect(await getLikeNuxt(base, OPEN, [`${base}/open/none`, `${base}/__nuxt_error`])).toEqual([
    [404, "/__nuxt_error?statusCode=404 of ended"],
    [303, `${base}/login?next=%2F__nuxt_error`],
  ]);
});
