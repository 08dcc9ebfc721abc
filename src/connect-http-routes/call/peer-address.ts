import { type ContextKey, createContextKey } from "@connectrpc/connect";

/** The network address that the request comes from; undefined if the server does not know it. */
export const peerAddress: ContextKey<string | undefined> = createContextKey<string | undefined>(undefined, {
  description: "network address of the client",
});
