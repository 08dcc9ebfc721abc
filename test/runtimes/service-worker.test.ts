/** The verifier, the HTTP layer and the browser kit in service workers. */
import { once } from "node:events";
import { createServer, request as forward, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { type Engine, startChromium } from "../browser/engines/driver.ts";
import { startFirefox } from "../browser/engines/firefox.ts";
import { serverAuthority } from "../support/certificate.ts";
import type { Service } from "../support/service.ts";
import { cookie, logIn } from "../support/sessions.ts";
import { bundle } from "./bundle.ts";
import type { Running } from "./commands.ts";
import { describeRuntime } from "./must-hold.ts";

const worker = await bundle("service-worker.ts", ["worker", "browser"]);
const { authority } = serverAuthority(["localhost"]);

const PAGE = `<!doctype html><title>service worker</title><script>
globalThis.started = navigator.serviceWorker.register("/worker.js").then(() => navigator.serviceWorker.ready);
globalThis.ask = async (text) => {
  const { active } = await started;
  const { port1, port2 } = new MessageChannel();
  const response = new Promise((resolve) => (port1.onmessage = ({ data }) => resolve(data)));
  active.postMessage(text, [port2]);
  return response;
};
</script>`;

/**
 * Serves the page and its worker. Forwards calls of the public API with the cookie of a session, and all other calls to the admin API. It
 * removes the header `Origin`, because the admin API refuses calls from foreign origins.
 */
async function startPage(service: Service) {
  const { refreshToken } = await logIn(service);
  const send = (response: ServerResponse, type: string, body: string) =>
    response.writeHead(200, { "content-type": type }).end(body);
  const pass = (request: IncomingMessage, response: ServerResponse) => {
    const { method, url = "/", headers } = request;
    const { host: _, origin: __, ...passedOn } = headers;
    const isPublic = url.startsWith("/v1/");
    const target = isPublic ? service.publicUrl : service.adminUrl;
    const sent = { ...passedOn, ...(isPublic && cookie(refreshToken)) };
    const passed = forward(target + url, { method, headers: sent }, (reply) => {
      response.writeHead(reply.statusCode ?? 502, reply.headers);
      reply.pipe(response);
    });
    response.on("close", () => passed.destroy());
    passed.on("error", () => response.destroy());
    request.pipe(passed);
  };
  const server = createServer((request, response) => {
    if (request.url === "/") send(response, "text/html", PAGE);
    else if (request.url === "/worker.js") send(response, "text/javascript", worker.code);
    else pass(request, response);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return { url: `http://localhost:${(server.address() as AddressInfo).port}`, server };
}

const startIn = (startEngine: () => Promise<Engine>) => async (service: Service) => {
  const [{ url, server }, engine] = await Promise.all([startPage(service), startEngine()]);
  const tab = await engine.open(`${url}/`);
  const ask = async (text: string) => {
    const response = await tab.evaluate<string>(`ask(${JSON.stringify(text)})`);
    return (JSON.parse(response) as { readonly result?: unknown }).result;
  };
  // The kit runs in the same worker as the verifier.
  const kitToken = await ask("kit");
  const running: Running = {
    run: (command, input) => ask(JSON.stringify({ command, input })),
    async stop() {
      await engine.close();
      server.closeAllConnections();
      server.close();
    },
  };
  return { running, adminUrl: url, kitToken };
};

test("the bundle of a service worker imports nothing of Node", () => {
  expect(worker.imports).toEqual([]);
});

for (const [name, startEngine] of [
  ["a service worker in Chromium", () => startChromium(authority)],
  ["a service worker in Firefox", () => startFirefox(authority)],
] as const) {
  describeRuntime({ name, start: startIn(startEngine), hasKit: true, live: { pollIntervalMs: 20 } });
}
