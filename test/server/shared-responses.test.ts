/** Responses that an application creates once and sends to many users, such as a redirect that is a constant. */
import { createRequire } from "node:module";
import { join } from "node:path";
import { expect, test } from "vitest";
import { sessionMiddleware as forAstro } from "../../src/server/astro.ts";
import { sessionMiddleware as forHono } from "../../src/server/hono.ts";
import type { ServerSessions } from "../../src/server/index.ts";
import { sessionMiddleware as forReactRouter } from "../../src/server/react-router.ts";
import { sessionHandle } from "../../src/server/sveltekit.ts";
import { aService } from "../support/every-protocol.ts";
import { aServer, aVerifier, COOKIES, signIn } from "./world.ts";

const service = aService(COOKIES);
const kept = aVerifier(service);

/** Starts an application that responds to every request with `shared`. Returns a function that sends requests to it. */
type Run = (
  sessions: ServerSessions,
  shared: Response,
) => ((request: Request) => Promise<Response>) | Promise<(request: Request) => Promise<Response>>;

type HonoLike = new () => {
  use(middleware: ReturnType<typeof forHono>): void;
  all(path: string, handler: () => Response): void;
  fetch(request: Request): Promise<Response>;
};

const inHono: Run = async (sessions, shared) => {
  const { resolve } = createRequire(join(import.meta.dirname, "../dependencies/frameworks/package.json"));
  const { Hono } = (await import(resolve("hono"))) as { readonly Hono: HonoLike };
  const app = new Hono();
  app.use(forHono(sessions));
  app.all("*", () => shared);
  return async (request) => app.fetch(request);
};

const inSvelteKit: Run = (sessions, shared) => (request) => {
  const event = { request, url: new URL(request.url), isDataRequest: false, locals: {}, getClientAddress: () => "" };
  return sessionHandle(sessions)({ event, resolve: () => shared });
};

const inAstro: Run = (sessions, shared) => (request) => {
  const context = { request, url: new URL(request.url), locals: {}, isPrerendered: false, clientAddress: "" };
  return forAstro(sessions)(context, async () => shared);
};

const inReactRouter: Run = (sessions, shared) => (request) =>
  forReactRouter(sessions, {})({ request, context: new Map() }, async () => shared);

test.each([
  ["Hono", inHono],
  ["SvelteKit", inSvelteKit],
  ["Astro", inAstro],
  ["React Router", inReactRouter],
])("%s: no user gets the cookies of another one, or headers of earlier responses", async (_, run) => {
  const shared = new Response(null, { status: 302, headers: { location: "/orders" } });
  const send = await run(aServer(service, kept.verifier).sessions, shared);
  const jar = await signIn(service);
  jar.cookies.delete("access_token");
  expect((await send(jar.request("/"))).headers.getSetCookie()).toHaveLength(2);
  for (const other of [await signIn(service), await signIn(service)]) {
    const { status, headers } = await send(other.request("/"));
    expect(headers.getSetCookie()).toEqual([]);
    expect([status, headers.get("location"), headers.get("vary")]).toEqual([302, "/orders", "Cookie"]);
  }
});

test("a response that cannot be copied is sent as it is", async () => {
  // The handshake of a WebSocket has the status 101, which `new Response` refuses.
  const handshake = Object.defineProperty(new Response(), "status", { value: 101 });
  const send = await inAstro(aServer(service, kept.verifier).sessions, handshake);
  expect(await send((await signIn(service)).request("/"))).toBe(handshake);
});
