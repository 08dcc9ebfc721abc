import type { IncomingMessage } from "node:http";
import { constants, type Http2ServerRequest } from "node:http2";
import { type NodeResponse, writeHead } from "./node-response.ts";

/** How many bytes of a refused body are still read. */
const MAX_LINGER_BYTES = 1_048_576;
/** How long a refused body is still read, in milliseconds. */
const MAX_LINGER_MS = 1_000;

/**
 * Responds to a request whose body is still arriving, and reads a bounded amount more of it. If the connection were closed at once, TCP
 * would reset it, and a client that is still sending might never receive the response.
 */
export function respondWithinBody(
  request: IncomingMessage | Http2ServerRequest,
  response: NodeResponse,
  status: number,
  lines: string[],
  content: string | Uint8Array | undefined,
): void {
  if ("stream" in response) {
    const { stream } = response;
    writeHead(response, status, lines);
    // RFC 9113 section 8.1: NO_ERROR means that the response is complete and the rest of the request is not needed.
    response.end(content ?? "", () => stream.close(constants.NGHTTP2_NO_ERROR));
    return;
  }
  writeHead(response, status, [...lines, "connection", "close"]);
  if (content === undefined) response.flushHeaders();
  else response.write(content);
  const end = () => {
    clearTimeout(timer);
    request.off("data", count);
    request.pause();
    response.end();
  };
  const timer = setTimeout(end, MAX_LINGER_MS);
  let length = 0;
  const count = (chunk: Buffer) => {
    length += chunk.byteLength;
    if (length > MAX_LINGER_BYTES) end();
  };
  if (request.readableEnded) {
    end();
    return;
  }
  request.on("data", count);
  request.once("end", end);
  request.once("close", end);
}
