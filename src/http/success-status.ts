import { type ContextKey, createContextKey } from "@connectrpc/connect";

/**
 * The HTTP status of a success. A handler or an interceptor may choose another 2xx or 3xx:
 * `context.values.set(successStatus, 201)`. It means nothing over RPC.
 */
export const successStatus: ContextKey<number> = createContextKey(200, { description: "HTTP status of a success" });
