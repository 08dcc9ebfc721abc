import type { DescMessage } from "@bufbuild/protobuf";
import type { ConnectRouter } from "@connectrpc/connect";

/** What an empty message may take, such as `{}` or fields that are ignored, bytes. */
const MAX_EMPTY_BYTES = 512;
/** Longer than any message with fields that a caller has a use for: a session id, a page token, the name of a service. */
const MAX_SMALL_BYTES = 4096;

function maxBytesOf({ fields }: DescMessage): number {
  return fields.length === 0 ? MAX_EMPTY_BYTES : MAX_SMALL_BYTES;
}

/**
 * Registers services of small messages: each RPC reads no more than a message of its can need, decoded or not. Inflating and parsing a long
 * one for nothing is the cheapest way to keep a service busy.
 */
export function withSmallMessages(router: ConnectRouter, maxBodyBytes: number): ConnectRouter {
  const small: ConnectRouter = {
    handlers: router.handlers,
    service(service, implementation, options) {
      for (const method of service.methods) {
        const call = implementation[method.localName as keyof typeof implementation] as Parameters<
          typeof router.rpc
        >[1];
        small.rpc(method, call, options);
      }
      return small;
    },
    rpc(method, implementation, options) {
      const readMaxBytes = Math.min(maxBodyBytes, maxBytesOf(method.input));
      router.rpc(method, implementation, { ...options, readMaxBytes });
      return small;
    },
  };
  return small;
}
