import { createContextKey, type HandlerContext } from "@connectrpc/connect";
import type { Audit } from "../session/audit.ts";
import type { ClientCertificate } from "./admin/credential.ts";

/** What the listener knows of a request beyond its headers. Looked up only when it matters. */
export const callerKey = createContextKey<{
  /** The origin that the request was sent to. */
  readonly origin: () => string | null;
  /** The network address that it comes from. */
  readonly address: () => string | undefined;
  /** The certificate that the client presented. */
  readonly certificate: () => ClientCertificate | undefined;
  /** Gives the call up, with what was written and is not taken. */
  readonly hangUp: () => void;
}>(
  { origin: () => null, address: () => undefined, certificate: () => undefined, hangUp() {} },
  { description: "caller" },
);

/** What a use case needs, its events told with the address of the caller. */
export function withCaller<Deps extends { readonly audit: Audit }>(deps: Deps, context: HandlerContext): Deps {
  const { address } = context.values.get(callerKey);
  return { ...deps, audit: (event) => deps.audit(event, address) };
}
