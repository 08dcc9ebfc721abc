import { once } from "node:events";
import { createServer } from "node:http";
import { connect, constants, createServer as createHttp2Server } from "node:http2";
import type { AddressInfo } from "node:net";
import type { NodeHandler } from "../../../src/connect-http-routes/index.ts";

/** The parts of a response that tests check. */
export interface TestResponse {
  readonly status: number;
  /** The headers by lower-case name, with one element per header line. */
  readonly headers: ReadonlyMap<string, readonly string[]>;
  readonly body: Buffer;
  readonly text: string;
  json(): unknown;
}

export interface TestRequest {
  readonly method?: string;
  /** The raw target: path and query. */
  readonly target: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array | undefined;
}

/** A running server and a client that sends raw targets. */
export interface Listener extends AsyncDisposable {
  readonly origin: string;
  readonly port: number;
  fetchRaw(request: TestRequest): Promise<TestResponse>;
}

export async function openHttp1(handler: NodeHandler): Promise<Listener> {
  const server = createServer({ keepAliveTimeout: 1 }, handler);
  const port = await listen(server);
  const { request } = await import("node:http");
  return {
    origin: `http://127.0.0.1:${port}`,
    port,
    fetchRaw: ({ method = "GET", target, headers = {}, body }) =>
      new Promise((resolve, reject) => {
        const length = body === undefined ? {} : { "content-length": String(Buffer.byteLength(body)) };
        const call = request({
          host: "127.0.0.1",
          port,
          method,
          path: target,
          headers: { ...length, ...headers },
          agent: false,
        });
        call.on("error", reject);
        call.on("response", (response) => {
          const chunks: Buffer[] = [];
          response.on("data", (chunk: Buffer) => chunks.push(chunk));
          response.on("error", reject);
          response.on("end", () => {
            const lines = new Map<string, string[]>();
            for (const [name, values] of Object.entries(response.headersDistinct)) if (values) lines.set(name, values);
            resolve(toTestResponse(response.statusCode ?? 0, lines, Buffer.concat(chunks)));
          });
        });
        call.end(body);
      }),
    async [Symbol.asyncDispose]() {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
}

export async function openHttp2(handler: NodeHandler): Promise<Listener> {
  const server = createHttp2Server(handler);
  const port = await listen(server);
  const session = connect(`http://127.0.0.1:${port}`);
  return {
    origin: `http://127.0.0.1:${port}`,
    port,
    fetchRaw: ({ method = "GET", target, headers = {}, body }) =>
      new Promise((resolve, reject) => {
        const stream = session.request(
          { [constants.HTTP2_HEADER_METHOD]: method, [constants.HTTP2_HEADER_PATH]: target, ...headers },
          { endStream: body === undefined },
        );
        const chunks: Buffer[] = [];
        let status = 0;
        const lines = new Map<string, string[]>();
        stream.on("error", reject);
        stream.on("close", () => reject(new Error(`the stream closed: ${stream.rstCode}`)));
        stream.on("response", (head) => {
          status = head[":status"] ?? 0;
          for (const [name, value] of Object.entries(head)) {
            if (!name.startsWith(":") && value !== undefined) lines.set(name, [value].flat().map(String));
          }
        });
        stream.on("data", (chunk: Buffer) => chunks.push(chunk));
        stream.on("end", () => resolve(toTestResponse(status, lines, Buffer.concat(chunks))));
        if (body !== undefined) stream.end(body);
      }),
    async [Symbol.asyncDispose]() {
      session.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

/** Wraps a fetch handler as a `Listener`, which calls the handler directly, without a socket. */
export function openFetch(handler: (request: Request) => Promise<Response>): Listener {
  const origin = "http://127.0.0.1";
  return {
    origin,
    port: 0,
    async fetchRaw({ method = "GET", target, headers = {}, body }) {
      const content = typeof body === "string" ? body : body && Buffer.from(body);
      // A string body would set a content type; a Blob does not.
      const init = content === undefined ? {} : { body: new Blob([content]) };
      const response = await handler(new Request(origin + target, { method, headers, ...init }));
      const lines = new Map<string, string[]>();
      for (const [name, value] of response.headers) lines.set(name, [...(lines.get(name) ?? []), value]);
      return toTestResponse(response.status, lines, Buffer.from(await response.arrayBuffer()));
    },
    async [Symbol.asyncDispose]() {},
  };
}

function toTestResponse(status: number, headers: ReadonlyMap<string, readonly string[]>, body: Buffer): TestResponse {
  const text = body.toString();
  return { status, headers, body, text, json: () => JSON.parse(text) as unknown };
}

async function listen(server: ReturnType<typeof createServer> | ReturnType<typeof createHttp2Server>): Promise<number> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}
