/** Proxies in front of the service or of applications, which count requests and simulate failures. */
import { once } from "node:events";
import { createServer, request as send } from "node:http";
import type { AddressInfo } from "node:net";

/** The default of the kit's option `minValidityMs`: the kit renews an access token that is valid for less than this, in ms. */
const MIN_VALIDITY_MS = 10_000;

/** Starts a proxy in front of `target`, which counts refreshes and fails when tests want it to. */
export async function startRelay(target: string) {
  const relay = {
    url: "",
    refreshes: 0,
    /** The refresh tokens that responses have set. Each rotation sets one. */
    tokens: new Set<string>(),
    /** By how much each premature refresh was too early, in ms. The kit must not renew an access token that is valid for 10 s or more. */
    early: [] as number[],
    isDown: false,
    /** Returns by how much to delay a response, in ms; undefined to lose it. */
    delayMs: (): number | undefined => 0,
    close: () => {},
  };
  /** The time from which the kit may renew the newest access token (10 s before its expiry), in ms since the epoch. */
  let dueAtMs = 0;
  function noteTokens(setCookies: string): void {
    const [, token] = /\brefresh_token=([^;]+)/.exec(setCookies) ?? [];
    const [, payload] = /\baccess_token=[^.;]+\.([^.;]+)/.exec(setCookies) ?? [];
    if (!token || relay.tokens.has(token)) return;
    const nowMs = Date.now();
    if (relay.tokens.size > 0 && nowMs < dueAtMs) relay.early.push(dueAtMs - nowMs);
    relay.tokens.add(token);
    const { exp } = JSON.parse(Buffer.from(payload ?? "", "base64url").toString() || "{}") as { exp?: number };
    dueAtMs = (exp ?? 0) * 1_000 - MIN_VALIDITY_MS;
  }
  const server = createServer((request, response) => {
    if (request.url === "/v1/auth/refresh") relay.refreshes++;
    if (relay.isDown) {
      response.writeHead(503).end('{"error":{"code":"E503_UNAVAILABLE"}}');
      return;
    }
    const { method, headers } = request;
    const onward = send(new URL(request.url ?? "/", target), { method, headers });
    onward.on("response", (reply) => {
      noteTokens(String(reply.headers["set-cookie"]));
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
