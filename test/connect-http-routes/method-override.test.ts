import type { ConnectRouter } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createFetchHandler, createHttpHandler } from "../../src/connect-http-routes/index.ts";
import { RelayServiceRoutes } from "./gen/relay/v1/relay_http.ts";
import { RichServiceRoutes } from "./gen/rich/v1/rich_http.ts";
import { relayRoutes } from "./support/relay-service.ts";
import { richRoutes } from "./support/rich-service.ts";
import { type Listener, openFetch, openHttp1 } from "./support/servers.ts";

const serving = { routes: relayRoutes(), tables: [RelayServiceRoutes] };
let listeners: Record<string, Listener>;
beforeAll(async () => {
  listeners = {
    http: await openHttp1(createHttpHandler({ ...serving, methodOverride: true })),
    fetch: openFetch(createFetchHandler({ ...serving, methodOverride: true })),
    off: await openHttp1(createHttpHandler(serving)),
  };
});
afterAll(async () => {
  for (const listener of Object.values(listeners)) await listener[Symbol.asyncDispose]();
});

const status = async (listener: string, method: string, override: string) => {
  const headers = { "x-http-method-override": override };
  const response = await listeners[listener]?.fetchRaw({ method, target: "/v1/items/a", headers, body: "" });
  return response?.status;
};

describe("X-HTTP-Method-Override", () => {
  test.each(["http", "fetch"])("names the method of a POST, by option (%s)", async (listener) => {
    expect(await status(listener, "POST", "GET")).toBe(200);
    expect(await status(listener, "POST", "DELETE")).toBe(405);
    expect(await status(listener, "PUT", "GET")).toBe(405);
    // HEAD is refused as the override of a POST. The response to HEAD announces a body and has none, so a client that sent a POST would
    // wait for that body.
    expect(await status(listener, "POST", "HEAD")).toBe(405);
  });

  test("is an option of a table, too: a POST to the routes of other tables stays a POST", async () => {
    const routes = (router: ConnectRouter) => {
      relayRoutes()(router);
      richRoutes(router);
    };
    const tables = [{ ...RelayServiceRoutes, methodOverride: true }, RichServiceRoutes];
    const listener = openFetch(createFetchHandler({ routes, tables }));
    const headers = { "x-http-method-override": "GET" };
    const get = await listener.fetchRaw({ method: "POST", target: "/v1/items/a", headers, body: "" });
    expect(get.json()).toEqual({ name: "a" });
    const post = await listener.fetchRaw({ method: "POST", target: "/v1/echo?int32Value=1", headers, body: "{}" });
    expect(post.json()).toEqual({});
  });

  test("is ignored by default", async () => {
    expect(await status("off", "POST", "GET")).toBe(405);
  });
});
