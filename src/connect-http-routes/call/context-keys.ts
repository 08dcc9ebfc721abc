import { type ContextKey, createContextKey } from "@connectrpc/connect";

/** The network address that the request comes from; undefined if the server does not know it. */
export const peerAddress: ContextKey<string | undefined> = createContextKey<string | undefined>(undefined, {
  description: "network address of the client",
});

/**
 * The HTTP status of a success, 200 by default. A handler or an interceptor may choose another 2xx or 3xx:
 * `context.values.set(successStatus, 201)`. RPC endpoints ignore it.
 */
export const successStatus: ContextKey<number> = createContextKey(200, { description: "HTTP status of a success" });
