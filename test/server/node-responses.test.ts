/** Headers that an application sets after the adapter for Express has run, or before the adapter for Fastify runs. */
import { once } from "node:events";
import type { Server, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import express from "express";
import Fastify from "fastify";
import { expect, onTestFinished, test } from "vitest";
import { getUser, sessionMiddleware } from "../../src/server/express.ts";
import { sessionHook } from "../../src/server/fastify.ts";
import { createServerSessions } from "../../src/server/index.ts";
import { pageRequestOf } from "../../src/server/node-request.ts";

const RENEWED = ["refresh_token=b; Path=/", "access_token=c; Path=/"];
const OWN = "own=1; Path=/";

/** Creates the server kit of an application. Its service is simulated, and renews every session. */
function renewing() {
  const headers = new Headers(RENEWED.map((line) => ["set-cookie", line]));
  return createServerSessions({
    service: "http://127.0.0.1:9",
    fetch: async () => Response.json({ data: { accessToken: "c" } }, { headers }),
    verifier: { verify: async () => ({ ok: true, claims: { sub: "user", sid: "s1", exp: 0 } }) },
  });
}

async function request(server: Server, headers: Record<string, string>, path = "/"): Promise<Headers> {
  const { port } = server.address() as AddressInfo;
  const response = await fetch(`http://127.0.0.1:${port}${path}`, { headers });
  await response.text();
  return response.headers;
}

test.each<[string, (response: ServerResponse) => unknown]>([
  ["setHeader", (response) => response.setHeader("Set-Cookie", OWN)],
  ["appendHeader", (response) => response.appendHeader("set-cookie", OWN)],
  ["writeHead with an object", (response) => response.writeHead(200, { "Set-Cookie": [OWN] })],
  ["writeHead with an array", (response) => response.writeHead(200, "OK", ["X-Own", "1", "Set-Cookie", OWN])],
])("Express: %s keeps the cookies of a renewal, before those of the application", async (_, respond) => {
  const app = express();
  app.use(sessionMiddleware(renewing()));
  app.use((_request, response) => {
    respond(response);
    response.end();
  });
  const server = app.listen(0, "127.0.0.1");
  onTestFinished(() => void server.close());
  await once(server, "listening");
  const headers = await request(server, { cookie: "refresh_token=a" });
  expect(headers.getSetCookie()).toEqual([...RENEWED, OWN]);
});

test.each<[string, (response: ServerResponse) => void]>([
  ["an object", (response) => response.writeHead(200, "Fine", { "Cache-Control": "public", "X-Own": "1" })],
  ["null", (response) => response.setHeader("x-own", "1").writeHead(200, "Fine", null as never)],
  ["an array", (response) => response.writeHead(200, "Fine", ["cache-control", "public", "X-Own", "1"])],
  [
    "no headers",
    (response) => response.setHeader("x-own", "1").setHeader("cache-control", "public").writeHead(200, "Fine"),
  ],
  [
    "all cookies removed",
    (response) => {
      response.setHeader("x-own", "1").removeHeader("set-cookie");
      response.writeHead(200, "Fine");
    },
  ],
])("Express: other headers of the application stay, but for that of caches, with %s", async (_, respond) => {
  const app = express();
  app.use(sessionMiddleware(renewing()));
  app.use((_request, response) => {
    respond(response);
    response.end();
  });
  const server = app.listen(0, "127.0.0.1");
  onTestFinished(() => void server.close());
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const { headers, statusText } = await fetch(`http://127.0.0.1:${port}/`, { headers: { cookie: "refresh_token=a" } });
  expect([headers.get("x-own"), headers.get("cache-control")]).toEqual(["1", "private, no-store"]);
  expect([headers.getSetCookie(), statusText]).toEqual([RENEWED, "Fine"]);
});

test("a request of node:http is read without pseudo-headers and what is absent", () => {
  const socket = {};
  const list = ["a", "b"];
  const { headers } = pageRequestOf({
    headers: { ":path": "/x", ":authority": "a.example", none: undefined, list },
    socket,
  });
  expect(Object.fromEntries(headers)).toEqual({ host: "a.example", list: "a, b" });
  const named = pageRequestOf({ headers: { ":authority": "a.example", host: "b.example" }, socket });
  expect(Object.fromEntries(named.headers)).toEqual({ host: "b.example" });
  expect([...pageRequestOf({ headers: {}, socket }).headers]).toEqual([]);
});

test("a request that no adapter has seen has no user who is known", () => {
  expect(getUser({})).toEqual({ state: "unavailable" });
});

test("Express: the application decides about caches where no session is renewed", async () => {
  const app = express();
  app.use(sessionMiddleware(renewing(), { isPublic: () => true }));
  app.use((_request, response) => void response.set("cache-control", "public").send("page"));
  const server = app.listen(0, "127.0.0.1");
  onTestFinished(() => void server.close());
  await once(server, "listening");
  const headers = await request(server, {});
  expect([headers.get("cache-control"), headers.get("vary")]).toEqual(["public", "Cookie"]);
});

test("Fastify: a renewal is for no cache, whatever earlier hooks and the page say", async () => {
  const app = Fastify();
  onTestFinished(() => app.close());
  app.addHook("onRequest", async (_request, reply) => {
    reply.header("cache-control", "public");
  });
  app.addHook("onRequest", sessionHook(renewing(), { isPublic: () => true }));
  app.get("/", async () => "page");
  app.get("/public", async (_request, reply) => reply.header("cache-control", "public").send("page"));
  await app.listen({ port: 0, host: "127.0.0.1" });
  expect((await request(app.server, {})).get("cache-control")).toBe("private, no-store");
  for (const path of ["/", "/public"]) {
    // Each request has a token of its own, because one that shares the refresh of another gets no cookies.
    const headers = await request(app.server, { cookie: `refresh_token=${path}` }, path);
    expect([headers.get("cache-control"), headers.getSetCookie()]).toEqual(["private, no-store", RENEWED]);
  }
});

test("Fastify: what an earlier hook has said in Vary is kept", async () => {
  const app = Fastify();
  onTestFinished(() => app.close());
  app.addHook("onRequest", async (_request, reply) => {
    reply.header("vary", "Origin");
  });
  app.addHook("onRequest", sessionHook(renewing()));
  app.get("/", async () => "page");
  await app.listen({ port: 0, host: "127.0.0.1" });
  expect((await request(app.server, {})).get("vary")).toBe("Origin, Cookie");
});
