import { Code, ConnectError, createContextKey, type Interceptor } from "@connectrpc/connect";
import { authorize } from "./bearer.ts";
import type { Claims } from "./verdict.ts";
import type { Verifier } from "./verifier.ts";

/** Where a handler finds who calls: `context.values.get(callerClaims)`. */
export const callerClaims = createContextKey<Claims | undefined>(undefined, {
  description: "claims of the access token",
});

/** Lets only bearers of a good access token through to the methods of a Connect server. */
export function accessTokenInterceptor(verifier: Verifier): Interceptor {
  return (next) => async (request) => {
    const caller = await authorize(verifier, request.header.get("authorization"));
    if (!("claims" in caller)) {
      const { "content-type": _, ...headers } = caller.headers;
      const code = caller.status === 401 ? Code.Unauthenticated : Code.Unavailable;
      throw new ConnectError(
        caller.status === 401 ? "authentication failed" : "temporarily unavailable",
        code,
        headers,
      );
    }
    request.contextValues.set(callerClaims, caller.claims);
    return next(request);
  };
}
