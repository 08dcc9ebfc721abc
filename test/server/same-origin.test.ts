import { once } from "node:events";
import { connect, createServer } from "node:http2";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { isSafe, isSameOrigin } from "../../src/server/index.ts";
import { pageRequestOf } from "../../src/server/node-request.ts";

const request = (headers: Record<string, string>) => ({ method: "POST", headers: new Headers(headers) });
const HOST = { host: "app.example" };

test.each([
  [{ "sec-fetch-site": "same-origin" }, true],
  [{ "sec-fetch-site": "none" }, true],
  [{ "sec-fetch-site": "same-site" }, false],
  [{ "sec-fetch-site": "cross-site" }, false],
  [{ "sec-fetch-site": "new-value" }, false],
  [{ "sec-fetch-site": "cross-site", origin: "https://app.example" }, false],
  [{ "sec-fetch-site": "same-origin", origin: "null" }, true],
  [{ "sec-fetch-site": "same-origin, same-origin" }, false],
  [{ origin: "https://app.example" }, true],
  [{ origin: "https://APP.example" }, true],
  [{ origin: "https://app.example:8443" }, false],
  [{ origin: "https://evil.example" }, false],
  [{ origin: "https://app.example.evil.example" }, false],
  [{ origin: "null" }, false],
  [{}, true],
])("%j: %s", (headers, expected) => {
  expect(isSameOrigin(request({ ...HOST, ...headers } as Record<string, string>))).toBe(expected);
});

test.each([
  ["https://app.example", "app.example:443", true],
  ["http://app.example", "app.example:80", true],
  ["https://[::1]", "[::1]:443", true],
  ["https://app.example", "app.example:80", false],
  ["http://app.example", "app.example:443", false],
  ["https://app.example:8443", "app.example:8443:443", false],
  ["app:x", ":undefined", false],
])("a page of %s comes from the host %s: %s", (origin, host, expected) => {
  expect(isSameOrigin(request({ host, origin }))).toBe(expected);
});

test("a listed origin is the application's, however the browser calls it", () => {
  const sibling = request({ ...HOST, "sec-fetch-site": "same-site", origin: "https://shop.example" });
  expect(isSameOrigin(sibling)).toBe(false);
  expect(isSameOrigin(sibling, ["https://shop.example"])).toBe(true);
  const foreign = request({ ...HOST, "sec-fetch-site": "cross-site", origin: "https://shop.example" });
  expect([isSameOrigin(foreign), isSameOrigin(foreign, ["https://shop.example"])]).toEqual([false, true]);
  const strange = request({ ...HOST, "sec-fetch-site": "new-value", origin: "https://shop.example" });
  expect(isSameOrigin(strange, ["https://shop.example"])).toBe(false);
});

test.each(["https://shop.example/", "https://SHOP.example", "https://shop.example:443"])(
  "%s is listed for that origin",
  (listed) => {
    const headers = { ...HOST, "sec-fetch-site": "same-site" };
    expect(isSameOrigin(request({ ...headers, origin: "https://shop.example" }), [listed])).toBe(true);
    for (const origin of ["https://shop.example:8443", "http://shop.example", "null"])
      expect(isSameOrigin(request({ ...headers, origin }), [listed])).toBe(false);
  },
);

test("a listed origin of an application's own scheme stands for no page without an origin", () => {
  const headers = { ...HOST, "sec-fetch-site": "cross-site" };
  expect(isSameOrigin(request({ ...headers, origin: "capacitor://localhost" }), ["capacitor://localhost"])).toBe(true);
  expect(isSameOrigin(request({ ...headers, origin: "null" }), ["capacitor://localhost"])).toBe(false);
});

test("a request that names no host comes from no page of the application", () => {
  expect(isSameOrigin(request({ origin: "https://app.example" }))).toBe(false);
});

test.each([
  ["app.example", true],
  ["app.example:443", true],
  ["app.example, 10.0.0.1:3000", true],
  ["app.example ,10.0.0.1:3000", true],
  ["10.0.0.1:3000, app.example", false],
  ["", false],
  [", app.example", false],
])("behind proxies the host is the one that the browser called: %j", (forwarded, expected) => {
  const headers = { host: "127.0.0.1:3000", "x-forwarded-host": forwarded, origin: "https://app.example" };
  expect(isSameOrigin(request(headers))).toBe(expected);
});

test("by HTTP/2 the host is the authority of the request", async () => {
  const server = createServer((incoming, response) => response.end(String(isSameOrigin(pageRequestOf(incoming)))));
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as AddressInfo;
  const session = connect(`http://127.0.0.1:${port}`);
  onTestFinished(() => {
    session.destroy();
    server.close();
  });
  const post = async (origin: string) => {
    const stream = session.request({ ":method": "POST", ":path": "/", origin }).setEncoding("utf8");
    return (await stream.end().toArray()).join("");
  };
  expect(await post(`http://127.0.0.1:${port}`)).toBe("true");
  expect(await post("http://evil.example")).toBe("false");
});

test.each([
  ["GET", true],
  ["HEAD", true],
  ["OPTIONS", true],
  ["get", true],
  ["POST", false],
  ["DELETE", false],
  ["QUERY", false],
])("%s is safe: %s", (method, expected) => expect(isSafe({ method })).toBe(expected));
