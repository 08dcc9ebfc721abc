/** `examples/web` as a program: its start, its end, the headers that it sends, and its proxy. */
import { existsSync } from "node:fs";
import { createServer, get, type IncomingMessage, request } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { passOn } from "../../examples/web/proxy.ts";
import { scratch } from "../support/service.ts";
import { type Example, runExample, startExample } from "./example.ts";

let example: Example;
beforeAll(async () => {
  example = await startExample();
});
afterAll(async () => {
  await example?.stop();
});

test("a port in use is named, and nothing else is started", async () => {
  const dataDir = join(scratch(), "data");
  const second = runExample(example.port, { DATA_DIR: dataDir });
  expect(await second.exited).toBe(1);
  expect(second.errors()).toBe(
    `Port ${example.port} is in use. Choose another one: PORT=${example.port + 1} npm run example:web\n`,
  );
  expect(existsSync(dataDir)).toBe(false);
});

test.each(["abc", "0", "70000"])("PORT=%s is refused", async (port) => {
  const refused = runExample(0, { PORT: port });
  expect(await refused.exited).toBe(1);
  expect(refused.errors()).toBe(`PORT must be a number from 1 to 65535, not "${port}".\n`);
});

test("a service that ends, ends the program", async () => {
  const own = await startExample();
  process.kill(own.servicePid, "SIGKILL");
  expect(await own.exited).toBe(1);
  await expect(fetch(own.url)).rejects.toThrow();
});

test("a program that is stopped leaves no service behind", async () => {
  const own = await startExample();
  await own.stop();
  expect(await own.exited).toBe(0);
  expect(() => process.kill(own.servicePid, 0)).toThrow("ESRCH");
});

test.each(["/", "/main.js", "/none", "/api/notes"])(
  "%s has a strict policy, and its type is not guessed",
  async (path) => {
    const { headers } = await fetch(example.url + path);
    const policy = headers.get("content-security-policy") ?? "";
    expect(policy).toMatch(/^default-src 'none'; script-src 'self';/);
    expect(policy).not.toContain("unsafe");
    expect(headers.get("x-content-type-options")).toBe("nosniff");
  },
);

test("a page by another name of the host leads to the origin", async () => {
  const { port } = example;
  const response = await new Promise<IncomingMessage>((resolve) =>
    get({ host: "localhost", port, headers: { host: `127.0.0.1:${port}` } }, resolve),
  );
  response.resume();
  expect(response.statusCode).toBe(308);
  expect(response.headers.location).toBe(`${example.url}/`);
});

test("a login from another origin is refused, and one that is too long", async () => {
  const logIn = (origin: string, body: string) =>
    fetch(`${example.url}/login`, { method: "POST", headers: { origin }, body: new URLSearchParams({ email: body }) });
  expect((await logIn("https://elsewhere.example", "a")).status).toBe(403);
  expect((await logIn(example.url, "a".repeat(20_000))).status).toBe(413);
});

/** Runs the proxy in front of a service of the test. */
async function withProxy(serve: (request: IncomingMessage, response: import("node:http").ServerResponse) => void) {
  const listen = async (server: ReturnType<typeof createServer>) => {
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  };
  const service = createServer(serve);
  const serviceUrl = await listen(service);
  const proxy = createServer((incoming, response) => passOn(serviceUrl, incoming, response));
  const url = await listen(proxy);
  const stop = () => {
    for (const server of [proxy, service]) {
      server.closeAllConnections();
      server.close();
    }
  };
  return { url, stop };
}

test("a browser that gives up ends the request to the service", async () => {
  const arrived = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<void>();
  const { url, stop } = await withProxy((incoming) => {
    incoming.once("close", ended.resolve);
    arrived.resolve();
  });
  const leaving = request(url, { method: "POST" }).on("error", () => {});
  leaving.end();
  await arrived.promise;
  leaving.destroy();
  await ended.promise;
  stop();
});

test("a response that the service breaks off is not passed off as a whole one", async () => {
  const { url, stop } = await withProxy((_, response) => {
    response.writeHead(200, { "content-type": "text/plain" });
    response.write("half", () => response.destroy());
  });
  const response = await fetch(url);
  await expect(response.text()).rejects.toThrow();
  stop();
});

test("a service that is gone is a bad gateway", async () => {
  const { url, stop } = await withProxy((incoming) => incoming.socket.destroy());
  const response = await fetch(url);
  expect(response.status).toBe(502);
  expect(await response.json()).toEqual({ error: "the session service cannot be reached" });
  stop();
});
