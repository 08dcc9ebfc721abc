/** Clients that refresh their session in a loop until they are stopped. The kinds of clients differ in how they connect. */

import { Agent, type IncomingMessage, request as send } from "node:http";
import { text } from "node:stream/consumers";
import { http2Client } from "./http2-client.ts";

export type Load = {
  /** Descriptions of all failures. */
  readonly failures: readonly string[];
  readonly requests: () => number;
  /** Stops the clients. Resolves when every client has received its last response. */
  stop(): Promise<void>;
};

export type Way = "keep-alive" | "rare keep-alive" | "new connections" | "HTTP/2";

type Reply = { readonly status: number; readonly next: string | undefined; readonly body: string };
/** Sends a refresh with a cookie. */
type Refresh = (cookie: string) => Promise<Reply>;
type Client = { readonly refresh: Refresh; readonly pauseMs: number; close(): void };

const PATH = "/v1/auth/refresh";
const nextCookie = (lines: readonly string[] | undefined) => lines?.[0]?.split(";")[0];

function overHttp1(url: string, keepAlive: boolean, pauseMs: number): Client {
  const agent = new Agent({ keepAlive, maxSockets: 1 });
  return {
    pauseMs,
    close: () => agent.destroy(),
    refresh: (cookie) =>
      new Promise((resolve, reject) => {
        const outgoing = send(new URL(PATH, url), { method: "POST", agent, headers: { cookie } });
        outgoing.once("error", reject).once("response", (incoming: IncomingMessage) => {
          const { statusCode: status = 0, headers } = incoming;
          text(incoming).then((body) => resolve({ status, next: nextCookie(headers["set-cookie"]), body }), reject);
        });
        outgoing.end();
      }),
  };
}

function overHttp2(url: string): Client {
  const client = http2Client(url);
  return {
    pauseMs: 0,
    close: () => client.close(),
    async refresh(cookie) {
      const { status, headers, body } = await client.send({ ":method": "POST", ":path": PATH, cookie });
      return { status, next: nextCookie(headers["set-cookie"]), body };
    },
  };
}

const WAYS: Readonly<Record<Way, (url: string) => Client>> = {
  "keep-alive": (url) => overHttp1(url, true, 0),
  "rare keep-alive": (url) => overHttp1(url, true, 300),
  "new connections": (url) => overHttp1(url, false, 0),
  "HTTP/2": overHttp2,
};

/** @param cookies for each client, the cookies of one session */
export function startLoad(url: string, way: Way, cookies: readonly string[]): Load {
  const failures: string[] = [];
  let requests = 0;
  let stopping = false;
  const clients = cookies.map(async (first) => {
    const client = WAYS[way](url);
    let cookie = first;
    while (!stopping) {
      requests++;
      try {
        const { status, next, body } = await client.refresh(cookie);
        if (status !== 200) failures.push(`${way}: ${status} ${body}`);
        cookie = next ?? cookie;
      } catch (error) {
        failures.push(`${way}: ${error instanceof Error && "code" in error ? error.code : error}`);
      }
      if (client.pauseMs > 0) await new Promise((resolve) => setTimeout(resolve, client.pauseMs));
    }
    client.close();
  });
  return {
    failures,
    requests: () => requests,
    async stop() {
      stopping = true;
      await Promise.all(clients);
    },
  };
}
