/** Proxies that count and fail, in front of the service and in front of applications. */
import { once } from "node:events";
import { createServer, request as send } from "node:http";
import type { AddressInfo } from "node:net";

/** A proxy in front of `target`, which counts refreshes and fails as tests want. */
export async function startRelay(target: string) {
  const relay = {
    url: "",
    refreshes: 0,
    /** The refresh tokens that responses have set: one for each rotation. */
    tokens: new Set<string>(),
    isDown: false,
    /** How late a response is, ms; undefined for one that is lost. */
    delayMs: (): number | undefined => 0,
    close: () => {},
  };
  const server = createServer((request, response) => {
    if (request.url === "/v1/auth/refresh") relay.refreshes++;
    if (relay.isDown) {
      response.writeHead(503).end('{"error":{"code":"E503_UNAVAILABLE"}}');
      return;
    }
    const { method, headers } = request;
    const onward = send(new URL(request.url ?? "/", target), { method, headers });
    onward.on("response", (reply) => {
      const [, token] = /\brefresh_token=([^;]+)/.exec(String(reply.headers["set-cookie"])) ?? [];
      if (token) relay.tokens.add(token);
      const delayMs = relay.delayMs();
      if (delayMs === undefined) response.destroy();
      else setTimeout(() => reply.pipe(response.writeHead(reply.statusCode ?? 502, reply.rawHeaders)), delayMs);
    });
    onward.on("error", () => response.destroy());
    request.pipe(onward);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  relay.url = `http://localhost:${(server.address() as AddressInfo).port}`;
  relay.close = () => server.close().closeAllConnections();
  return relay;
}
