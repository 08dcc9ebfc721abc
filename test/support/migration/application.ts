/** An application whose sessions are migrated: it records what it is asked, and replies as a test says. */
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { freePort } from "../free-port.ts";

export type Asked = { readonly headers: IncomingHttpHeaders; readonly body: unknown };
/** An reply is the object of a 200, the status of an empty response, or a function that responds. */
export type Reply = object | number | ((response: ServerResponse) => void);

export type TestApplication = {
  readonly url: string;
  readonly asked: readonly Asked[];
  /** Replies to questions about this cookie from now on. For other cookies there is no session. */
  reply(cookie: string, reply: Reply): void;
  /** Refuses connections until `start`. */
  stop(): Promise<void>;
  start(): Promise<void>;
};

export async function startApplication(): Promise<TestApplication> {
  const asked: Asked[] = [];
  const replies = new Map<string, Reply>();
  const port = await freePort();
  const open = async () => {
    const server = createServer(async (request, response) => {
      const { headers } = request;
      asked.push({ headers, body: JSON.parse(await text(request)) });
      const reply = replies.get(headers.cookie ?? "") ?? 204;
      if (typeof reply === "function") return reply(response);
      if (typeof reply === "number") return void response.writeHead(reply).end();
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(reply));
    }).listen(port, "127.0.0.1");
    await once(server, "listening");
    return server;
  };
  let server = await open();
  return {
    url: `http://127.0.0.1:${port}/session`,
    asked,
    reply: (cookie, reply) => void replies.set(cookie, reply),
    async stop() {
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    },
    async start() {
      server = await open();
    },
  };
}
