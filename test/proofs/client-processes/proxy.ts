/** An HTTP proxy that loses, delays and repeats requests and responses. */
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import { setTimeout as pause } from "node:timers/promises";

type BadProxy = {
  readonly url: string;
  /** Sets the target of requests from now on. */
  direct(target: string): void;
  /** How many requests and responses were lost, and how many requests were repeated. */
  readonly lost: () => number;
  readonly repeated: () => number;
  stop(): Promise<void>;
};

/** @param delayMs the longest delay of a request, and of a response @param lateMs the longest time after which a request is repeated */
export async function startBadProxy(delayMs: number, lateMs: number): Promise<BadProxy> {
  let [lost, repeated, target] = [0, 0, ""];
  const ending = new AbortController();
  const some = (share: number) => Math.random() < share;
  /** Returns a random delay: most are zero, some are very long. */
  const wait = (most: number) =>
    some(0.7) ? undefined : pause(Math.random() * most, undefined, { signal: ending.signal });
  const forward = async (path: string, headers: IncomingHttpHeaders, body: Buffer) => {
    const { dpop, "content-type": contentType = "" } = headers;
    const sent = { "content-type": contentType, ...(typeof dpop === "string" && { dpop }) };
    const response = await fetch(target + path, { method: "POST", headers: sent, body, signal: ending.signal });
    return { status: response.status, headers: response.headers, body: Buffer.from(await response.arrayBuffer()) };
  };
  const server = createServer(async (request, response) => {
    const lose = () => {
      lost++;
      response.destroy();
    };
    try {
      const body = await buffer(request);
      const { url = "/", headers } = request;
      if (some(0.1)) return lose();
      await wait(delayMs);
      const replies = [forward(url, headers, body)];
      if (some(0.1)) {
        repeated++;
        replies.push(Promise.resolve(wait(lateMs)).then(() => forward(url, headers, body)));
      }
      for (const reply of replies) reply.catch(() => undefined);
      const reply = await replies[0];
      await wait(delayMs);
      if (reply === undefined || some(0.1)) return lose();
      const nonce = reply.headers.get("dpop-nonce");
      response.writeHead(reply.status, { "content-type": "application/json", ...(nonce && { "dpop-nonce": nonce }) });
      response.end(reply.body);
    } catch {
      lose();
    }
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    direct(url) {
      target = url;
    },
    lost: () => lost,
    repeated: () => repeated,
    async stop() {
      ending.abort();
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}
