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
