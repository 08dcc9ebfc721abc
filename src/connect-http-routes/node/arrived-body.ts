/** Takes small bodies that Node has parsed together with their heads. Listening to a stream costs more than the rest of such a request. */
import type { IncomingMessage } from "node:http";
import { Http2ServerRequest } from "node:http2";

type NodeRequest = IncomingMessage | Http2ServerRequest;

const NO_BYTES = new Uint8Array();

/**
 * Returns the whole body, once. Returns undefined if it has not arrived, if somebody reads it, and for HTTP/2, where its arrival cannot
 * be determined. The caller calls `endTaken` before it responds.
 */
export function takeArrived(request: NodeRequest): Uint8Array | undefined {
  if (request instanceof Http2ServerRequest || request.destroyed) return undefined;
  if (request.readableDidRead || request.readableFlowing !== null) return undefined;
  // Node passes on the last bytes of a body before it sets `complete`. So the number of bytes is compared with `Content-Length` too, which
  // Node's parser has checked to consist of digits.
  const isWhole = request.complete || request.readableLength === Number(request.headers["content-length"]);
  return isWhole ? ((request.read() as Buffer | null) ?? NO_BYTES) : undefined;
}

/** Ends the stream of a request whose body was taken, because there may be listeners for its `end` and `close` events. */
export function endTaken(request: NodeRequest): void {
  if (request.complete) request.read(0);
  else request.resume();
}
