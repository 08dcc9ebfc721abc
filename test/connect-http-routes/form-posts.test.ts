import { expect, test } from "vitest";
import { createFetchHandler } from "../../src/connect-http-routes/index.ts";
import { RelayServiceRoutes } from "./gen/relay/v1/relay_http.ts";
import { relayRoutes } from "./support/relay-service.ts";
import { openFetch } from "./support/servers.ts";

const serving = { routes: relayRoutes(), tables: [RelayServiceRoutes] };
const post = async (formPosts: boolean, body: string, contentType = "application/x-www-form-urlencoded") => {
  const listener = openFetch(createFetchHandler({ ...serving, formPosts }));
  return listener.fetchRaw({ method: "POST", target: "/v1/items", headers: { "content-type": contentType }, body });
};

test("a form is a message whose fields are named as in a query, by option", async () => {
  const response = await post(true, "name=a+b%2Fc&number=9007199254740993&tags=x&tags=y&unknown=1");
  expect(response.json()).toEqual({ name: "a b/c", number: "9007199254740993", tags: ["x", "y"] });
  const utf8 = await post(true, "name=%C3%A4", "application/x-www-form-urlencoded; charset=UTF-8");
  expect(utf8.json()).toEqual({ name: "ä" });
  expect((await post(true, "")).json()).toEqual({});
});

test.each([
  ["a value of the wrong type", "number=x", undefined, 400],
  ["a malformed escape", "name=%zz", undefined, 400],
  ["a field given twice", "name=a&name=b", undefined, 400],
  ["another charset", "name=a", "application/x-www-form-urlencoded; charset=latin1", 415],
])("a form is refused for %s", async (_, body, contentType, status) => {
  expect((await post(true, body, contentType)).status).toBe(status);
});

test("forms are an option of a table, too, which wins over the handler's", async () => {
  const tables = [{ ...RelayServiceRoutes, formPosts: false }];
  const listener = openFetch(createFetchHandler({ routes: relayRoutes(), tables, formPosts: true }));
  const headers = { "content-type": "application/x-www-form-urlencoded" };
  expect((await listener.fetchRaw({ method: "POST", target: "/v1/items", headers, body: "name=a" })).status).toBe(415);
});

test("a query beside a form is refused where unknown parameters are", async () => {
  const listener = openFetch(createFetchHandler({ ...serving, formPosts: true, refuseUnknownQuery: true }));
  const headers = { "content-type": "application/x-www-form-urlencoded" };
  const send = (target: string) => listener.fetchRaw({ method: "POST", target, headers, body: "name=a" });
  expect([(await send("/v1/items")).status, (await send("/v1/items?tags=x")).status]).toEqual([200, 400]);
});

test("forms are refused by default", async () => {
  expect((await post(false, "name=a")).status).toBe(415);
});
