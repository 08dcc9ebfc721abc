/** A protected path is protected in every spelling. Raw connections send spellings to real frameworks that no browser sends. */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import express from "express";
import Fastify from "fastify";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { sessionMiddleware } from "../../src/server/express.ts";
import { sessionHook } from "../../src/server/fastify.ts";
import type { ServerSessions } from "../../src/server/index.ts";
import { isDecodable, pathReadings, requestTarget } from "../../src/server/paths.ts";
import { aService } from "../support/every-protocol.ts";
import { getRaw } from "./raw-request.ts";
import { aServer, aVerifier, COOKIES } from "./world.ts";

/** The widest options that protect a page and everything below its path. */
const OPTIONS = {
  isPublic: () => true,
  isProtected: (path: string) => path === "/account" || path.startsWith("/account/"),
};
const SECRET = "the account";

async function runExpress(sessions: ServerSessions) {
  const app = express();
  app.use(sessionMiddleware(sessions, OPTIONS));
  app.use("/account", (_request, response) => void response.send(SECRET));
  app.use((_request, response) => void response.send("open"));
  const server = createServer(app).listen(0, "127.0.0.1");
  await once(server, "listening");
  return { port: (server.address() as AddressInfo).port, close: () => server.close() };
}

async function runFastify(sessions: ServerSessions) {
  const routerOptions = {
    ...{ ignoreDuplicateSlashes: true, ignoreTrailingSlash: true, caseSensitive: false, useSemicolonDelimiter: true },
  };
  const app = Fastify({ routerOptions });
  app.addHook("onRequest", sessionHook(sessions, OPTIONS));
  app.get("/account", () => SECRET);
  app.get("/account/*", () => SECRET);
  app.get("/*", () => "open");
  await app.listen({ port: 0, host: "127.0.0.1" });
  return { port: (app.server.address() as AddressInfo).port, close: () => app.close() };
}

const WRITTEN = [
  ...["/account", "/account/", "/account//", "//account", "///account/x", "/./account", "/x/../account", "/account/.."],
  ...[
    "/account/../login",
    "/account/%2e%2e/x",
    "/account/..;/x",
    "/account;x=1",
    "/account?x=/..",
    "/account#/..",
    "/AcCount/",
  ],
  ...[
    "/%61ccount/../x",
    "/%61ccount/%zz",
    "/%61ccount/%ff/..",
    "/%41ccount;",
    "//account/../x",
    "//x/account",
    "http://a/account",
  ],
  ...["/account/%2f..%2f..", "/account\\..", "/\\account"],
  ...["http://a/account/../login", "http://a/account/%2e%2e/x", "HTTP://A/account/..", "x://a/account/.."],
  ...["http:///account", "http:///x/../account", "http://a:99999999/account", "http://x@/account", "http://a?/account"],
];
const STRANGE = ["/", "//", "///", "//[", "//:99999999/", "/\\", "http://", "/%", "/%ff", "*"];

describe.each([
  ["Express", runExpress],
  ["Fastify", runFastify],
])("%s", (_, run) => {
  const service = aService(COOKIES);
  const kept = aVerifier(service);
  let running: Awaited<ReturnType<typeof run>>;
  beforeAll(async () => {
    running = await run(aServer(service, kept.verifier).sessions);
  });
  afterAll(() => running.close());

  test.each(WRITTEN)("%s does not lead a stranger to the account", async (path) => {
    expect((await getRaw(running.port, path)).body).not.toBe(SECRET);
  });

  test.each(STRANGE)("%s is no fault of the kit", async (path) => {
    expect((await getRaw(running.port, path)).status).toBeLessThan(500);
  });
});

test.each([
  "/account.data",
  "/account/_.data",
  "/account.rsc",
  "/account/__data.json",
  "/account/_payload.json",
  "/_next/data/b1/account.json",
  "/account/_payload_json",
  "/account/_payload.js",
  "/account/_payload.json%3Fx",
  "/x/../%61ccount.DATA",
])("%s is for the data of the account", (path) => {
  expect(pathReadings(path)).toContain("/account");
});

test.each([1, 2, 3, 11])("a path that is encoded %i times is decoded as often, as Astro does", (times) => {
  expect(pathReadings(`/%${"25".repeat(times - 1)}61ccount`)).toContain("/account");
});

test.each([
  ["http:///x/account", ["/account", "/x/account"]],
  ["http://a?/account", ["/account", "/"]],
  ["http://a#/account", ["/account", "/"]],
  ["http://a%2faccount/x", ["/account/x", "/x"]],
  ["//a?/account", ["/account", "/"]],
])("%s has a path for each grammar of authorities", (url, paths) => {
  expect(pathReadings(requestTarget(url).path)).toEqual(expect.arrayContaining(paths));
});

test.each([
  ["http://account/x?y#z", "/x", "?y"],
  ["http://account", "/", ""],
  ["//a/x?y", "//a/x", "?y"],
  ["/x:y?http://a/b", "/x:y", "?http://a/b"],
])("the path of %s is %s", (url, path, search) => {
  expect(requestTarget(url)).toEqual({ path, search });
});

test.each(["/account%3Fx", "/account%3f/x", "/account%23x", "/%61ccount%253Fx"])(
  "a query of %s that begins with an encoded delimiter is separated, as Nuxt does",
  (path) => {
    expect(pathReadings(path)).toContain("/account");
  },
);

test("characters that delimit parts of a URL are decoded, as Nuxt and React Router do, all but the slash", () => {
  expect(pathReadings("/%40%23%24%26%2B%2c%3A%3b%3D%3f%2F")).toContain("/@#$&+,:;=?%2F");
});

test.each([
  ...[
    "/orders/7",
    "/",
    "/a.b/c.css",
    "/caf\u00e9",
    "/a.database",
    "/a.data/b",
    "/a.json5",
    "/a/__data.jsx",
    "/a.html5",
  ],
  ...["/a/index.htmlx", "/a.rsc/b", "/a/_payload.jsonl", "/x/_next/data/b/c"],
])("the plain path %s has one reading", (path) => {
  expect(pathReadings(path)).toEqual([path]);
});

test.each([
  ["/%2Faccount", "/account"],
  ["/open%2f..%2faccount", "/account"],
  ["/open/%252e%252e/account/%25252e%25252e/open/x", "/account/%2e%2e/open/x"],
  ["/open\\..\\account", "/account"],
  ["/account;/../open/x", "/account"],
  ["/account%3b/../../open", "/account"],
  ["/acc%09ount", "/account"],
  ["/account/index.html", "/account"],
  ["/account/index.htm", "/account"],
  ["/x/./%2e/account", "/x/account"],
  ["/account.htm", "/account"],
  ["/caf%c3%a9", "/caf\u00e9"],
  ["//a,b/account", "/account"],
  ["//ab,c/account", "/,c/account"],
  ["/account.json", "/account"],
  ["/account.segments/_tree.segment.rsc", "/account"],
  ["/ACCOUNT.HTML", "/account"],
])("%s may be read as %s", (path, reading) => {
  expect(pathReadings(path)).toContain(reading);
});

test.each([
  ["/%61%ff%62", "/a%ffb"],
  ["/%2561%25ff", "/a%ff"],
])("%s: octets that are no UTF-8 stay encoded, and letters beside them are decoded", (path, reading) => {
  expect(pathReadings(path)).toContain(reading);
});

test("a part of a path that stays encoded in a framework has a reading in which it does", () => {
  expect(pathReadings("/a%2Fb/%61ccount")).toContain("/a%2Fb/account");
});

test.each([
  ["/%", false],
  ["/%zz", false],
  ["/%ff", false],
  ["/%c3%a9", true],
  ["/100%25", true],
])("whether %s can be decoded: %s", (path, expected) => {
  expect(isDecodable(path)).toBe(expected);
});

test("the work for a path that is made to have many readings is bounded", () => {
  const path = `/${"A%252f;x\\..//b%3f.DATA/".repeat(400)}`;
  expect(pathReadings(path)).toBeUndefined();
  const begun = process.cpuUsage();
  pathReadings(path);
  const { user, system } = process.cpuUsage(begun);
  expect(user + system).toBeLessThan(100_000);
});

test.each([
  "/Docs/Getting%20Started/C%2B%2B.html",
  "/Caf%C3%A9/a%2Fb%2Fc;v=1/Index.HTML",
  "/Users/A%40Example.com/%7Efiles/",
  "/Search/100%25%20Wool%3F/",
])("%s, as an address of a page may be, has few readings", (path) => {
  expect(pathReadings(path)?.length).toBeLessThan(40);
});

test("a short path with too many readings is refused, too", () => {
  expect(pathReadings("//..%3b////;x\\%2f\\;x//.DATA//%252F/%2eA")).toBeUndefined();
});

test("only an authority at the beginning is left out", () => {
  expect(pathReadings("/a//b/c")).not.toContain("/a/c");
});

test("a long path without other readings has its one, and few readings have as many characters together as many have", () => {
  expect(pathReadings(`/${"a".repeat(16_000)}`)).toHaveLength(1);
  expect(pathReadings(`/${"A".repeat(16_383)}`)).toHaveLength(2);
  expect(pathReadings(`/${"A".repeat(16_384)}`)).toBeUndefined();
});
