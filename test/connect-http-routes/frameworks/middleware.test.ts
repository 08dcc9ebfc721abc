/** Middleware in front of the routes that sets headers of its own, or compresses what they write. */
import { createServer, get } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";
import { createGunzip } from "node:zlib";
import Express, { type RequestHandler } from "express";
import { expect, test } from "vitest";
import { createHttpHandler, type NodeHandler } from "../../../src/connect-http-routes/index.ts";
import { RichServiceRoutes } from "../gen/rich/v1/rich_http.ts";
import { RichService } from "../gen/rich/v1/rich_pb.ts";
import { richRoutes } from "../support/rich-service.ts";
import { openHttp1, openHttp2 } from "../support/servers.ts";

const options = { routes: richRoutes, tables: [RichServiceRoutes] };
const handler = createHttpHandler(options);
const json = { "content-type": "application/json" };

test.each([
  ["HTTP/1.1", openHttp1],
  ["HTTP/2", openHttp2],
] as const)("cookies and Vary of middleware are sent beside those of the RPC, over %s", async (_, open) => {
  const behind: NodeHandler = (request, response) => {
    response.setHeader("set-cookie", ["outer=1", "a=0"]);
    response.setHeader("vary", "Origin");
    handler(request, response);
  };
  await using listener = await open(behind);
  const misbehave = (how: string) =>
    listener.fetchRaw({ method: "POST", target: "/v1/misbehave", headers: json, body: JSON.stringify({ how }) });
  const cookies = ["outer=1", "a=0", "a=1; Path=/", "b=2; Path=/"];
  for (const how of ["created", "aborted", "no content"]) {
    const { headers } = await misbehave(how);
    expect([headers.get("set-cookie"), headers.get("vary")]).toEqual([cookies, ["Origin"]]);
  }
  const plain = await listener.fetchRaw({ target: "/v1/echo" });
  expect(plain.headers.get("set-cookie")).toEqual(["outer=1", "a=0"]);
});

test("headers pass middleware that replaces writeHead and knows no lists of lines", async () => {
  const behind: NodeHandler = (request, response) => {
    const writeHead = response.writeHead.bind(response) as (status: number) => never;
    response.writeHead = (status: number) => writeHead(status);
    handler(request, response);
  };
  await using listener = await openHttp1(behind);
  const body = JSON.stringify({ how: "created" });
  const { status, headers } = await listener.fetchRaw({ method: "POST", target: "/v1/misbehave", headers: json, body });
  expect([status, headers.get("content-type"), headers.get("set-cookie")]).toEqual([
    201,
    ["application/json"],
    ["a=1; Path=/", "b=2; Path=/"],
  ]);
});

test("a message of a stream passes middleware that compresses, before the next one", async () => {
  const { resolve } = createRequire(join(import.meta.dirname, "../../dependencies/frameworks/package.json"));
  // Next.js contains Express's `compression`.
  const { default: compression } = (await import(resolve("next/dist/compiled/compression"))) as {
    default: () => RequestHandler;
  };
  const first = Promise.withResolvers<void>();
  const counting = createHttpHandler({
    tables: [RichServiceRoutes],
    routes: (router) =>
      router.service(RichService, {
        async *count() {
          yield { number: 1 };
          await first.promise;
          yield { number: 2 };
        },
      }),
  });
  const server = createServer(Express().use(compression(), counting));
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const { port } = server.address() as { readonly port: number };
  const headers = { accept: "application/json", "accept-encoding": "gzip" };
  const text = await new Promise<string>((received, failed) => {
    const call = get({ port, path: "/v1/count/2", headers, agent: false }, (response) => {
      if (response.headers["content-encoding"] !== "gzip") return failed(new Error("the response is not compressed"));
      let all = "";
      response
        .pipe(createGunzip())
        .setEncoding("utf8")
        .on("data", (piece: string) => {
          all += piece;
          // The second message waits for the arrival of the first.
          if (all.includes("1")) first.resolve();
        })
        .on("end", () => received(all));
    });
    call.on("error", failed);
  });
  server.close();
  expect(JSON.parse(text)).toEqual([{ number: 1 }, { number: 2 }]);
});
