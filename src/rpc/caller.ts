import { createContextKey } from "@connectrpc/connect";

/** What the door knows of a request beyond its headers. Looked up only when it matters. */
export const callerKey = createContextKey<{
  /** The origin that the request was sent to. */
  readonly origin: () => string | null;
  /** The network address that it comes from. */
  readonly address: () => string | undefined;
  /** Gives the call up, with what was written and is not taken. */
  readonly hangUp: () => void;
}>({ origin: () => null, address: () => undefined, hangUp() {} }, { description: "caller" });
