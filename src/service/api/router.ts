import type { DescMethod } from "@bufbuild/protobuf";
import type { ConnectRouter, HandlerContext } from "@connectrpc/connect";

/** The implementation of an RPC of any kind. A request is a message, or an iterable of messages. */
export type Implementation = (request: unknown, context: HandlerContext) => unknown;

type Registered = { readonly implementation: Implementation; readonly options: Parameters<ConnectRouter["rpc"]>[2] };

/** Returns a router that registers on another one what a function makes of each RPC. RPCs that are not implemented are not registered. */
export function changedRouter(
  router: ConnectRouter,
  change: (method: DescMethod, implementation: Implementation, options: Registered["options"]) => Registered,
): ConnectRouter {
  const changed: ConnectRouter = {
    handlers: router.handlers,
    service(service, implementation, options) {
      for (const method of service.methods) {
        const call = implementation[method.localName as keyof typeof implementation];
        if (call !== undefined) changed.rpc(method, call as Parameters<ConnectRouter["rpc"]>[1], options);
      }
      return changed;
    },
    rpc(method, implementation, options) {
      const registered = change(method, implementation as Implementation, options);
      router.rpc(method, registered.implementation as Parameters<ConnectRouter["rpc"]>[1], registered.options);
      return changed;
    },
  };
  return changed;
}

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
