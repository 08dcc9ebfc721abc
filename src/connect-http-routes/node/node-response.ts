import { type OutgoingHttpHeader, ServerResponse } from "node:http";
import { constants, type Http2ServerResponse } from "node:http2";
import { clientDisconnected } from "../call/errors.ts";

/** The responses of node:http and of node:http2's compatibility API. */
export type NodeResponse = ServerResponse | Http2ServerResponse;

/** Whether the client has disconnected. */
export function isClosed(response: NodeResponse): boolean {
  return "stream" in response ? response.stream.closed || response.stream.destroyed : response.destroyed;
}

/** Aborts a response: HTTP/1 closes the connection, HTTP/2 resets only the stream. */
export function abort(response: NodeResponse): void {
  if ("stream" in response) response.stream.close(constants.NGHTTP2_INTERNAL_ERROR);
  else response.destroy();
}

/** Resolves when the response accepts more data; rejects if the client disconnects. */
export function write(response: NodeResponse, piece: string | Uint8Array): Promise<void> {
  return new Promise((resolve, reject) => {
    if (isClosed(response) || response.writableEnded) return reject(clientDisconnected());
    // TypeScript cannot unify the overloads of the two types.
    const flowing = "stream" in response ? response.write(piece) : response.write(piece);
    // Middleware that compresses keeps what is written until it has much. Express's `compression` adds this method for streams.
    if ("flush" in response && typeof response.flush === "function") response.flush();
    if (flowing) return resolve();
    const settle = (act: () => void) => () => {
      response.off("drain", onDrain);
      response.off("close", onClose);
      act();
    };
    const onDrain = settle(resolve);
    const onClose = settle(() => reject(clientDisconnected()));
    response.once("drain", onDrain);
    response.once("close", onClose);
  });
}

/** @param withinRequest whether the request body is still arriving: on HTTP/2 the client is asked to stop */
export function endStream(response: NodeResponse, withinRequest: boolean): void {
  if (withinRequest && "stream" in response) {
    const { stream } = response;
    // RFC 9113 section 8.1: NO_ERROR means that the response is complete and the rest of the request is not needed.
    response.end(() => stream.close(constants.NGHTTP2_NO_ERROR));
  } else response.end();
}

export function writeHead(response: NodeResponse, status: number, own: string[]): void {
  const cookies = response.getHeader("set-cookie");
  const vary = response.getHeader("vary");
  const lines = cookies === undefined && vary === undefined ? own : withOuter(own, cookies, vary);
  if (!("stream" in response) && response.writeHead === writeHeadOfNode) {
    response.writeHead(status, lines);
    return;
  }
  // Middleware that replaces `writeHead`, such as on-headers before 1.1, may take a list of lines for a list of pairs.
  for (const [name, value] of grouped(lines)) {
    if (!("stream" in response) || !CONNECTION_HEADERS.has(name)) response.setHeader(name, value);
  }
  // TypeScript cannot unify the overloads of the two types.
  if ("stream" in response) response.writeHead(status);
  else response.writeHead(status);
}

const { writeHead: writeHeadOfNode } = ServerResponse.prototype;

/** Adds the headers of middleware that the response does not replace. Its cookies come first, because the last one of a name counts. */
function withOuter(
  own: string[],
  cookies: OutgoingHttpHeader | undefined,
  vary: OutgoingHttpHeader | undefined,
): string[] {
  const lines = [cookies ?? []].flat().flatMap((cookie) => ["set-cookie", String(cookie)]);
  lines.push(...own);
  if (vary !== undefined) lines.push("vary", String(vary));
  return lines;
}

/** Sends a whole response with status 200 and trailers. */
export function sendWithTrailers(
  response: NodeResponse,
  lines: string[],
  content: Uint8Array | undefined,
  trailers: string[],
): void {
  writeHead(response, 200, lines);
  response.addTrailers(Object.fromEntries(grouped(trailers)) as Record<string, string>);
  if (content === undefined) response.end();
  else response.end(content);
}

/** Groups header lines by name, with one value or an array for each name, as the compatibility API of HTTP/2 requires. */
function grouped(lines: readonly string[]): Map<string, string | string[]> {
  const fields = new Map<string, string | string[]>();
  for (let i = 0; i < lines.length; i += 2) {
    const [name = "", value = ""] = [lines[i], lines[i + 1]];
    const other = fields.get(name);
    fields.set(name, other === undefined ? value : [...(Array.isArray(other) ? other : [other]), value]);
  }
  return fields;
}

/** HTTP/2 forbids these headers (RFC 9113 section 8.2.2). */
const CONNECTION_HEADERS = new Set(["connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"]);
