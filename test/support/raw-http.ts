/** A client for plain HTTP/1.1: raw paths, any header, no cookie jar, no redirects. */
import { type ClientRequest, request as httpRequest, type IncomingMessage } from "node:http";
import { request as httpsRequest } from "node:https";
import { EVENT_MS, inTime } from "./until.ts";

export type RawRequest = {
  readonly method?: string;
  /** The request target as it is sent. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string | string[]>>;
  readonly body?: string | Buffer | undefined;
  readonly ca?: Buffer;
  /** The client's own certificate and key, for mutual TLS. */
  readonly cert?: Buffer;
  readonly key?: Buffer;
  /** The address of this machine that the client uses. */
  readonly localAddress?: string;
  /** How long the response may take, in ms on an idle machine; as long as other events by default. */
  readonly limitMs?: number;
};

export type RawResponse = {
  readonly status: number;
  readonly headers: Headers;
  /** The values of each `Set-Cookie`. */
  readonly cookies: readonly string[];
  readonly body: string;
  readonly trailers: Headers;
};

/** Sends one request on a separate connection. */
export async function request(
  url: string,
  { method = "GET", path, headers = {}, body, ca, cert, key, localAddress, limitMs = EVENT_MS }: RawRequest,
): Promise<RawResponse> {
  const { hostname, port, protocol } = new URL(url);
  const send = protocol === "https:" ? httpsRequest : httpRequest;
  // Node sets no `Content-Length` for methods that usually have no body.
  const length =
    body === undefined || "transfer-encoding" in headers ? {} : { "content-length": String(Buffer.byteLength(body)) };
  let outgoing: ClientRequest | undefined;
  const response = new Promise<RawResponse>((resolve, reject) => {
    outgoing = send(
      {
        host: hostname,
        port,
        method,
        path,
        headers: { ...length, ...headers },
        agent: false,
        ...(localAddress === undefined ? {} : { localAddress }),
        ...(ca === undefined ? {} : { ca }),
        ...(cert === undefined ? {} : { cert, key }),
      },
      (incoming) => void read(incoming).then(resolve, reject),
    );
    outgoing.once("error", reject);
    outgoing.end(body);
  });
  return inTime(`a response to ${method} ${path}`, response, limitMs).finally(() => outgoing?.destroy());
}

async function read(incoming: IncomingMessage): Promise<RawResponse> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk as Buffer);
  const headers = new Headers();
  for (const [name, values] of Object.entries(incoming.headersDistinct)) {
    for (const value of values ?? []) headers.append(name, value);
  }
  const body = Buffer.concat(chunks).toString();
  const trailers = new Headers(incoming.trailers as Record<string, string>);
  return { status: incoming.statusCode ?? 0, headers, cookies: incoming.headers["set-cookie"] ?? [], body, trailers };
}
