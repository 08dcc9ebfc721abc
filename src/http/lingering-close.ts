import type { IncomingMessage } from "node:http";
import { constants, type Http2ServerRequest } from "node:http2";
import { type NodeResponse, writeHead } from "./node-response.ts";

/** How much more of a refused body is read, in bytes, and how long, in milliseconds. */
const maxBytes = 1_048_576;
const maxMs = 1_000;

/**
 * Answers a request whose body is still coming, and reads only so much more of it. A connection closed at once would be
 * reset by what comes in after, and a client that is still sending might never see the answer.
 */
export function endWithinBody(
  request: IncomingMessage | Http2ServerRequest,
  response: NodeResponse,
  status: number,
  lines: string[],
  content: string | Uint8Array | undefined,
): void {
  if ("stream" in response) {
    const { stream } = response;
    writeHead(response, status, lines);
    // RFC 9113 section 8.1: the answer is whole, the rest of the request is not wanted.
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
  const timer = setTimeout(end, maxMs);
  let length = 0;
  const count = (chunk: Buffer) => {
    length += chunk.byteLength;
    if (length > maxBytes) end();
  };
  if (request.readableEnded) {
    end();
    return;
  }
  request.on("data", count);
  request.once("end", end);
  request.once("close", end);
}
