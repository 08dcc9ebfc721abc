/** Fields that proto2 (and editions, as LEGACY_REQUIRED) require: a request without one is a bad request that names the field. */
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { createServer, type ServerHttp2Stream } from "node:http2";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import type { ConnectRouter } from "@connectrpc/connect";
import { describe, expect, onTestFinished, test } from "vitest";
import { createRestClient } from "../../src/connect-http-routes/client/index.ts";
import { createFetchHandler } from "../../src/connect-http-routes/index.ts";
import { runGateway } from "../connect-http-gateway/running.ts";
import { scratch } from "../support/service.ts";
import { LegacyServiceRoutes } from "./gen/legacy/v1/legacy_http.ts";
import { LegacyService } from "./gen/legacy/v1/legacy_pb.ts";
import { openFetch } from "./support/servers.ts";

let handled = 0;
const routes = (router: ConnectRouter) =>
  router.service(LegacyService, {
    put(request) {
      handled++;
      return request;
    },
    putItem({ item }) {
      handled++;
      return item ?? {};
    },
    find(request) {
      handled++;
      return request;
    },
    async collect(items) {
      handled++;
      let last = {};
      for await (const item of items) last = item;
      return last;
    },
  });
const handler = createFetchHandler({
  routes: (router) => void routes(router),
  tables: [LegacyServiceRoutes],
  formPosts: true,
});
const listener = openFetch(handler);

type Sent = { readonly method: string; readonly target: string; readonly body?: string; readonly type?: string };
const send = ({ method, target, body, type = "application/json" }: Sent) =>
  listener.fetchRaw({ method, target, body, headers: body === undefined ? {} : { "content-type": type } });

const post = (body: string): Sent => ({ method: "POST", target: "/v1/legacy/a", body });
const put = (query: string, body: string): Sent => ({ method: "PUT", target: `/v1/legacy-items${query}`, body });

const MISSING: readonly (readonly [string, Sent, string])[] = [
  ["in a body", post("{}"), "body: itemCount: is required"],
  ["in no body", { method: "POST", target: "/v1/legacy/a" }, "body: itemCount: is required"],
  ["in a message", post('{"itemCount":1,"item":{}}'), "body: item.id: is required"],
  ["in a list", post('{"itemCount":1,"items":[{"id":"1"},{}]}'), "body: items.id: is required"],
  ["in a map", post('{"itemCount":1,"byName":{"a":{"note":""}}}'), "body: byName.id: is required"],
  ["in a oneof", post('{"itemCount":1,"ofOneof":{}}'), "body: ofOneof.id: is required"],
  ["in a message of the same type", post('{"itemCount":1,"again":{"name":"b"}}'), "body: again.itemCount: is required"],
  ["in the field that is the body", put("?parent=p", "{}"), "body: item.id: is required"],
  ["in a query beside a body", put("", '{"id":"1"}'), "query: parent: is required"],
  ["in a query", { method: "GET", target: "/v1/legacy?note=x" }, "query: id: is required"],
  [
    "in a form",
    { method: "POST", target: "/v1/legacy/a", body: "item.note=x", type: "application/x-www-form-urlencoded" },
    "body: itemCount: is required",
  ],
];

describe("a required field that is missing", () => {
  test.each(MISSING)("%s is a bad request", async (_, sent, message) => {
    handled = 0;
    const response = await send(sent);
    expect([response.status, response.json()]).toEqual([400, expect.objectContaining({ code: 3, message })]);
    expect(handled).toBe(0);
  });

  test("in a message of a stream is a bad request", async () => {
    const body = '{"id":"1"}\n{"note":"x"}\n';
    const response = await send({ method: "POST", target: "/v1/legacy:collect", body, type: "application/x-ndjson" });
    expect([response.status, response.json()]).toEqual([
      400,
      expect.objectContaining({ message: "body: id: is required" }),
    ]);
  });

  test("never reaches the server behind the gateway, and is no failure of it", async () => {
    let calls = 0;
    const server = createServer().on("stream", (stream: ServerHttp2Stream) => {
      calls++;
      stream.respond({ ":status": 200, "content-type": "application/grpc", "grpc-status": "13" }, { endStream: true });
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    onTestFinished(() => void server.close());
    const set = join(scratch(), "legacy.binpb");
    execFileSync("node_modules/.bin/buf", [
      "build",
      "test/connect-http-routes/proto",
      "--path",
      "test/connect-http-routes/proto/legacy",
      "-o",
      set,
    ]);
    const upstream = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const gateway = await runGateway("--descriptors", set, "--upstream", upstream);
    const before = gateway.log.length;
    const headers = { "content-type": "application/json" };
    const response = await fetch(`${gateway.origin}/v1/legacy/a`, { method: "POST", body: "{}", headers });
    expect([response.status, await response.json()]).toEqual([
      400,
      expect.objectContaining({ message: "body: itemCount: is required" }),
    ]);
    expect(calls).toBe(0);
    expect(gateway.log.slice(before).filter(({ level }) => level !== "info")).toEqual([]);
  });
});

test("a request with all required fields is served", async () => {
  const body = '{"itemCount":0,"item":{"id":""},"items":[{"id":"1"}],"byName":{"a":{"id":"2"}}}';
  expect((await send(post(body))).json()).toEqual({ name: "a", ...JSON.parse(body) });
  expect((await send(put("?parent=p", '{"id":"1"}'))).json()).toEqual({ id: "1" });
  expect((await send({ method: "GET", target: "/v1/legacy?id=" })).json()).toEqual({ id: "" });
});

describe("a route whose response is one field of a message that requires others", () => {
  test("sends the field", async () => {
    const put = { method: "PUT", target: "/v1/legacy/a/2/item", body: '{"id":"1"}' };
    expect((await send(put)).json()).toEqual({ id: "1" });
    expect((await send({ method: "GET", target: "/v1/legacy-notes/1?note=n" })).json()).toBe("n");
  });

  test("sends the default of a field that is not set", async () => {
    expect((await send({ method: "GET", target: "/v1/legacy-notes/1" })).json()).toBe("");
  });
});

test("the client writes a number into the path of a message that requires other fields", async () => {
  const [first, ...others] = LegacyServiceRoutes.routes;
  const client = createRestClient(
    { ...LegacyServiceRoutes, routes: [...others, first] },
    { baseUrl: listener.origin, fetch: (url, init) => handler(new Request(url, init)) },
  );
  const { item } = await client.put({ name: "a", itemCount: 2, item: { id: "1" } });
  expect(item?.id).toBe("1");
});
