import type { ServerResponse } from "node:http";
import { constants, type Http2ServerResponse } from "node:http2";
import { Code, ConnectError } from "@connectrpc/connect";

/** The responses of node:http and of node:http2's compatibility API: near relations with different manners. */
export type NodeResponse = ServerResponse | Http2ServerResponse;

/** Whether nobody is there to read the response any more. */
export function isGone(response: NodeResponse): boolean {
  return "stream" in response ? response.stream.closed || response.stream.destroyed : response.destroyed;
}

/** In HTTP/1 the connection breaks; in HTTP/2 the stream is reset, and the others go on. */
export function cut(response: NodeResponse): void {
  if ("stream" in response) response.stream.close(constants.NGHTTP2_INTERNAL_ERROR);
  else response.destroy();
}

/** Resolves when the response takes more; rejects when it never will. */
export function write(response: NodeResponse, piece: string | Uint8Array): Promise<void> {
  return new Promise((resolve, reject) => {
    if (isGone(response) || response.writableEnded) return reject(clientGone());
    // The two kinds of response have overloads that do not unify.
    const flowing = "stream" in response ? response.write(piece) : response.write(piece);
    if (flowing) return resolve();
    const settle = (act: () => void) => () => {
      response.off("drain", onDrain);
      response.off("close", onClose);
      act();
    };
    const onDrain = settle(resolve);
    const onClose = settle(() => reject(clientGone()));
    response.once("drain", onDrain);
    response.once("close", onClose);
  });
}

export function clientGone(): ConnectError {
  return new ConnectError("the client closed the request", Code.Canceled);
}

export function writeHead(response: NodeResponse, status: number, own: string[]): void {
  // What a layer around this one varies by is true all the same; any other header of its own stays or is replaced.
  const outer = response.getHeader("vary");
  const lines = outer === undefined ? own : [...own, "vary", String(outer)];
  if (!("stream" in response)) {
    response.writeHead(status, lines);
    return;
  }
  // The compatibility API of HTTP/2 keeps one line per name of such a list: it wants them grouped.
  const grouped = new Map<string, string | string[]>();
  for (let i = 0; i < lines.length; i += 2) {
    const [name = "", value = ""] = [lines[i], lines[i + 1]];
    const other = grouped.get(name);
    grouped.set(name, other === undefined ? value : [...(Array.isArray(other) ? other : [other]), value]);
  }
  for (const [name, value] of grouped) if (!connectionHeaders.has(name)) response.setHeader(name, value);
  response.writeHead(status);
}

/** RFC 9113 section 8.2.2: these are errors in HTTP/2. */
const connectionHeaders = new Set(["connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"]);
