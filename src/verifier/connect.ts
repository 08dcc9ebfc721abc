import { Code, ConnectError, createContextKey, type Interceptor } from "@connectrpc/connect";
import { type AdapterOptions, authorize } from "./bearer.ts";
import type { Claims } from "./verdict.ts";
import type { Verifier } from "./verifier.ts";

/** The key under which a Connect handler finds the claims of the caller: `context.values.get(callerClaims)`. */
export const callerClaims = createContextKey<Claims | undefined>(undefined, {
  description: "claims of the access token",
});

/**
 * Requires a valid access token for every RPC of a Connect server; otherwise `unauthenticated` with a challenge, or
 * `unavailable` with `Retry-After`.
 *
 * @example
 * ```ts
 * import { createServer } from "node:http";
 * import { connectNodeAdapter } from "@connectrpc/connect-node";
 * import { accessTokenInterceptor, type Verifier } from "@session-service/verifier";
 *
 * const serve = (verifier: Verifier) =>
 *   createServer(connectNodeAdapter({ routes: () => {}, interceptors: [accessTokenInterceptor(verifier)] }));
 * ```
 */
export function accessTokenInterceptor(verifier: Verifier, { origin }: AdapterOptions = {}): Interceptor {
  return (next) => async (request) => {
    const { requestMethod: method, url, header: headers } = request;
    const given =
      origin === undefined ? headers.get("authorization") : { method, url: origin + new URL(url).pathname, headers };
    const caller = await authorize(verifier, given);
    if (!caller.ok) {
      const { "content-type": _, ...headers } = caller.headers;
      throw caller.status === 401
        ? new ConnectError("authentication failed", Code.Unauthenticated, headers)
        : new ConnectError("temporarily unavailable", Code.Unavailable, headers);
    }
    request.contextValues.set(callerClaims, caller.claims);
    return next(request);
  };
}
