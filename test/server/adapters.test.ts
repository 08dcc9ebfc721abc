/** Runs each adapter in its framework. The same rules hold for all of them. */
import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import { createRequire } from "node:module";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import express from "express";
import Fastify from "fastify";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import * as forAstro from "../../src/server/astro.ts";
import * as forExpress from "../../src/server/express.ts";
import * as forFastify from "../../src/server/fastify.ts";
import * as forHono from "../../src/server/hono.ts";
import type { ServerSessions, User } from "../../src/server/index.ts";
import { sessionHandler } from "../../src/server/nuxt.ts";
import * as forReactRouter from "../../src/server/react-router.ts";
import { sessionHandle } from "../../src/server/sveltekit.ts";
import { aService } from "../support/every-protocol.ts";
import { aServer, aVerifier, COOKIES, Jar, signIn } from "./world.ts";

const OPTIONS = {
  isPublic: () => true,
  isProtected: (path: string) => path === "/account" || path.startsWith("/account/") || path === "/login",
};
/** The header that an application sets for a page that it considers the same for all users. */
const PUBLIC = { "Cache-Control": "public, max-age=60" };
const isPublic = (url = "") => url.endsWith("/public");
type Send = (request: Request) => Promise<Response>;
type Running = { readonly send: Send; close(): Promise<unknown> | unknown };

/** Sends a request over the network, and follows no redirect. */
const over =
  (port: number): Send =>
  (request) => {
    const { pathname, search } = new URL(request.url);
    const { method, headers } = request;
    return fetch(`http://127.0.0.1:${port}${pathname}${search}`, { method, headers, redirect: "manual" });
  };

async function listen(listener: RequestListener): Promise<Running> {
  const server = createServer(listener).listen(0, "127.0.0.1");
  await once(server, "listening");
  return { send: over((server.address() as AddressInfo).port), close: () => server.close() };
}

async function runExpress(sessions: ServerSessions): Promise<Running> {
  const app = express();
  app.use(forExpress.sessionMiddleware(sessions, OPTIONS));
  app.use((request, response) => {
    if (isPublic(request.url)) response.set(PUBLIC);
    response.set("x-application", "yes").send(forExpress.getUser(request).state);
  });
  return listen(app);
}

/** Starts the middleware without its framework. The test calls the middleware as Express 4 does, which does not await the result. */
function runExpress4(sessions: ServerSessions): Promise<Running> {
  const middleware = forExpress.sessionMiddleware(sessions, OPTIONS);
  return listen((request, response) => {
    void middleware(request, response, (error) => {
      response.statusCode = error === undefined ? 200 : 500;
      response.setHeader("x-application", "yes");
      if (isPublic(request.url)) response.writeHead(200, PUBLIC);
      response.end(forExpress.getUser(request).state);
    });
  });
}

/** Starts the handler for Nuxt without its framework. The test calls the handler as h3 does. */
function runNuxt(sessions: ServerSessions): Promise<Running> {
  const handler = sessionHandler(sessions, OPTIONS);
  return listen(async (req, res) => {
    const context: { user?: User } = {};
    const own = await handler({ node: { req, res }, context });
    if (own) return void res.setHeaders(own.headers).writeHead(own.status).end();
    res.setHeader("x-application", "yes");
    if (isPublic(req.url)) res.writeHead(200, "OK", Object.entries(PUBLIC).flat());
    res.end(context.user?.state);
  });
}

async function runFastify(sessions: ServerSessions): Promise<Running> {
  const app = Fastify();
  app.addHook("onRequest", forFastify.sessionHook(sessions, OPTIONS));
  app.all("/public", (request, reply) => reply.headers(PUBLIC).send(forFastify.getUser(request).state));
  app.all("/*", (request, reply) => reply.header("x-application", "yes").send(forFastify.getUser(request).state));
  await app.listen({ port: 0, host: "127.0.0.1" });
  return { send: over((app.server.address() as AddressInfo).port), close: () => app.close() };
}

/** Returns a response that the application got from `fetch`, whose headers are immutable. */
const fetched = () => fetch("data:,proxied");

const rendered = async (request: Request, user: User | undefined) => {
  if (request.url.endsWith("/proxied")) return fetched();
  return new Response(user?.state, { headers: { "x-application": "yes", ...(isPublic(request.url) && PUBLIC) } });
};

/** The types of the parts of Hono that are used here. The root package.json does not include Hono. */
type HonoLike = new () => {
  use(middleware: ReturnType<typeof forHono.sessionMiddleware>): void;
  all(
    path: string,
    handler: (context: {
      get(name: "user"): User;
      text(text: string, status: 200, headers: object): Response;
    }) => Response | Promise<Response>,
  ): void;
  fetch(request: Request): Promise<Response>;
};

async function runHono(sessions: ServerSessions): Promise<Running> {
  const { resolve } = createRequire(join(import.meta.dirname, "../dependencies/frameworks/package.json"));
  const { Hono } = (await import(resolve("hono"))) as { readonly Hono: HonoLike };
  const app = new Hono();
  app.use(forHono.sessionMiddleware(sessions, OPTIONS));
  app.all("/proxied", () => fetched());
  app.all("/public", (context) => context.text(context.get("user").state, 200, PUBLIC));
  app.all("*", (context) => context.text(context.get("user").state, 200, { "x-application": "yes" }));
  return { send: async (request) => app.fetch(request), close: () => {} };
}

/** Starts the hook without its framework. The test calls the hook as SvelteKit does. */
async function runSvelteKit(sessions: ServerSessions): Promise<Running> {
  const handle = sessionHandle(sessions, OPTIONS);
  const resolve = ({ request, locals }: { readonly request: Request; readonly locals: { readonly user?: User } }) =>
    rendered(request, locals.user);
  return {
    send: (request) => {
      const url = new URL(request.url);
      return handle({
        event: { request, url, isDataRequest: false, locals: {}, getClientAddress: () => "192.0.2.7" },
        resolve,
      });
    },
    close: () => {},
  };
}

/** Starts the middleware without its framework. The test calls the middleware as Astro does. */
async function runAstro(sessions: ServerSessions): Promise<Running> {
  const onRequest = forAstro.sessionMiddleware(sessions, OPTIONS);
  const send = (request: Request) => {
    const locals: { user?: User } = {};
    const context = { request, url: new URL(request.url), locals, isPrerendered: false, clientAddress: "192.0.2.7" };
    return onRequest(context, () => rendered(request, locals.user));
  };
  return { send, close: () => {} };
}

/** Starts the middleware without its framework. The test calls the middleware as React Router does. */
async function runReactRouter(sessions: ServerSessions): Promise<Running> {
  const key = {};
  const middleware = forReactRouter.sessionMiddleware(sessions, key, OPTIONS);
  const send = (request: Request) => {
    const context = new Map<object, User>();
    return middleware({ request, context }, () => rendered(request, context.get(key)));
  };
  return { send, close: () => {} };
}

const PAGE = { accept: "text/html", "sec-fetch-mode": "navigate", "sec-fetch-site": "same-origin" };

describe.each([
  ["Express", runExpress],
  ["Express 4", runExpress4],
  ["Fastify", runFastify],
  ["Hono", runHono],
  ["SvelteKit", runSvelteKit],
  ["Astro", runAstro],
  ["Nuxt", runNuxt],
  ["React Router", runReactRouter],
])("%s", (_, run) => {
  const service = aService(COOKIES);
  const kept = aVerifier(service);
  let running: Running;
  beforeAll(async () => {
    running = await run(aServer(service, kept.verifier).sessions);
  });
  afterAll(() => running.close());

  test("a page has its user, and is for no shared cache", async () => {
    const jar = await signIn(service);
    const response = await running.send(jar.request("/account", PAGE));
    expect(await response.text()).toBe("active");
    expect(response.headers.get("x-application")).toBe("yes");
    expect(response.headers.getSetCookie()).toEqual([]);
    expect(response.headers.get("vary")).toContain("Cookie");
    expect(response.headers.get("cache-control")).toBe("private, no-store");
  });

  test("a renewal reaches the browser: each cookie in a line of its own", async () => {
    const jar = await signIn(service);
    jar.cookies.delete("access_token");
    const before = jar.cookies.get("refresh_token");
    const response = await running.send(jar.request("/account", PAGE));
    expect(await response.text()).toBe("active");
    expect(response.headers.getSetCookie()).toHaveLength(2);
    jar.take(response.headers.getSetCookie());
    expect(jar.cookies.get("access_token")).toBeDefined();
    expect(jar.cookies.get("refresh_token")).not.toBe(before);
  });

  test("after a renewal, too, the cookies of a session that is not to be remembered end with the browser", async () => {
    for (const persistent of [false, true]) {
      const jar = await signIn(service, undefined, { persistent });
      jar.cookies.delete("access_token");
      const lines = (await running.send(jar.request("/account", PAGE))).headers.getSetCookie();
      expect(lines).toHaveLength(2);
      for (const line of lines) expect(/max-age|expires/i.test(line), line).toBe(persistent);
    }
  });

  test("a renewal is for no cache, although the application lets caches keep the page", async () => {
    const jar = await signIn(service);
    const usual = await running.send(jar.request("/public", PAGE));
    expect([await usual.text(), usual.headers.get("cache-control")]).toEqual(["active", PUBLIC["Cache-Control"]]);
    jar.cookies.delete("access_token");
    const renewed = await running.send(jar.request("/public", PAGE));
    expect([await renewed.text(), renewed.headers.get("cache-control")]).toEqual(["active", "private, no-store"]);
  });

  test("a protected page leads to the login and back, and the login to itself never", async () => {
    const response = await running.send(new Jar().request("/account?tab=2", PAGE));
    expect([response.status, response.headers.get("location")]).toEqual([303, "/login?next=%2Faccount%3Ftab%3D2"]);
    const login = await running.send(new Jar().request("/login?next=%2Faccount", PAGE));
    expect([login.status, await login.text()]).toEqual([200, "ended"]);
    const open = await running.send(new Jar().request("/", PAGE));
    expect([open.status, await open.text()]).toEqual([200, "ended"]);
  });

  test.each(["/%61ccount", "/ACCOUNT", "/%61ccount/%ff", "/account.data"])(
    "%s is protected as /account is",
    async (path) => {
      // Frameworks find the same page under each of these paths: Hono and others decode a path before routing, even if a part cannot be
      // decoded; Express ignores case; React Router 8 requests the data of a page under `.data`.
      const response = await running.send(new Jar().request(path, PAGE));
      expect(response.headers.get("x-application")).toBeNull();
    },
  );

  test("a response that the application has fetched is sent on with the headers of the session", async () => {
    const jar = await signIn(service);
    jar.cookies.delete("access_token");
    const response = await running.send(jar.request("/proxied", PAGE));
    expect([response.status, response.headers.get("cache-control")]).toEqual([200, "private, no-store"]);
    expect(response.headers.getSetCookie()).toHaveLength(2);
  });

  test("a script gets 401 in place of a redirect", async () => {
    expect((await running.send(new Jar().request("/account", { accept: "application/json" }))).status).toBe(401);
  });

  test("a request of another site that changes something does not reach the application", async () => {
    const jar = await signIn(service);
    const foreign = await running.send(jar.request("/account", { "sec-fetch-site": "cross-site" }, "POST"));
    expect([foreign.status, foreign.headers.get("x-application")]).toEqual([403, null]);
    const own = await running.send(jar.request("/account", { "sec-fetch-site": "same-origin" }, "POST"));
    expect([own.status, await own.text()]).toEqual([200, "active"]);
  });
});
