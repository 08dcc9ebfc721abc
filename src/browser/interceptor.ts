/** Adds the access token to Connect calls. The types are structural, so that the kit does not depend on Connect. */
import { bearer, type Replace, type TokenFor } from "./fetch.ts";

type Call = {
  readonly url: string;
  readonly stream: boolean;
  readonly header: Headers;
  readonly signal: AbortSignal;
};

/** The type is assignable to Connect's `Interceptor`. */
export type AuthInterceptor = <Request extends Call, Response>(
  next: (request: Request) => Promise<Response>,
) => (request: Request) => Promise<Response>;

/** Connect's code for a missing or refused credential. */
const UNAUTHENTICATED = 16;

export function authInterceptor(tokenFor: TokenFor, replace: Replace): AuthInterceptor {
  return (next) => async (request) => {
    const attempt = (token: string) => {
      request.header.set("authorization", bearer(token));
      return next(request);
    };
    const token = await tokenFor(request.url, request.signal);
    try {
      return await attempt(token);
    } catch (error) {
      const refused = (error as { readonly code?: unknown } | undefined)?.code === UNAUTHENTICATED;
      const other = refused && (await replace(token, request.signal));
      // Messages of a stream have been read already, so the caller decides whether to start it again.
      if (!other || request.stream) throw error;
      return attempt(other);
    }
  };
}
