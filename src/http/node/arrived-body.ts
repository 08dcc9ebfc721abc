/**
 * The fast path for small bodies, which arrive together with their heads. The events of a stream cost more than the rest of such a
 * request, so a body that Node has parsed completely is taken without listening to it.
 */
import type { IncomingMessage } from "node:http";
import { Http2ServerRequest } from "node:http2";

const NO_BYTES = new Uint8Array();

/**
 * Returns the whole body, once. Returns undefined if it has not arrived yet, if it has been read or is being read, and for HTTP/2, which
 * does not tell.
 */
export function takeArrived(request: IncomingMessage | Http2ServerRequest): Uint8Array | undefined {
  if (request instanceof Http2ServerRequest || !request.complete || request.destroyed) return undefined;
  if (request.readableDidRead || request.readableFlowing !== null) return undefined;
  return (request.read() as Buffer | null) ?? NO_BYTES;
}
