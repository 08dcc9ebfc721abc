import type { ConnectRouter } from "@connectrpc/connect";

/** The size limit of messages without fields, in bytes. Such a message may still have fields that are ignored. */
const MAX_EMPTY_BYTES = 512;
/** The size limit of other small messages, in bytes. A session id, a page token or the name of a service is shorter. */
const MAX_SMALL_BYTES = 4096;

/**
 * Limits what RPCs with small messages read, compressed or not. Otherwise long messages, inflated and parsed for nothing, would be the
 * cheapest way to keep the service busy.
 */
export function withSmallMessages(router: ConnectRouter, maxBodyBytes: number): ConnectRouter {
  const small: ConnectRouter = {
    handlers: router.handlers,
    service(service, implementation, options) {
      for (const method of service.methods) {
        const call = implementation[method.localName as keyof typeof implementation];
        small.rpc(method, call as Parameters<ConnectRouter["rpc"]>[1], options);
      }
      return small;
    },
    rpc(method, implementation, options) {
      const maxBytes = method.input.fields.length === 0 ? MAX_EMPTY_BYTES : MAX_SMALL_BYTES;
      const readMaxBytes = Math.min(maxBodyBytes, maxBytes);
      router.rpc(method, implementation, { ...options, readMaxBytes });
      return small;
    },
  };
  return small;
}
