import type { ConnectRouter } from "@connectrpc/connect";
import { changedRouter } from "./router.ts";

/** The size limit of messages without fields, in bytes. Such a message may still have fields that are ignored. */
const MAX_EMPTY_BYTES = 512;
/** The size limit of other small messages, in bytes. A session id, a page token or the name of a service is shorter. */
const MAX_SMALL_BYTES = 4096;

/**
 * Limits what RPCs with small messages read, compressed or not. Otherwise long messages, inflated and parsed for nothing, would be the
 * cheapest way to keep the service busy.
 */
export function withSmallMessages(router: ConnectRouter, maxBodyBytes: number): ConnectRouter {
  return changedRouter(router, ({ input }, implementation, options) => {
    const maxBytes = input.fields.length === 0 ? MAX_EMPTY_BYTES : MAX_SMALL_BYTES;
    return { implementation, options: { ...options, readMaxBytes: Math.min(maxBodyBytes, maxBytes) } };
  });
}
