/** The access token on Connect calls. Typed by shape, so that the kit needs no Connect. */
import type { TokenSource } from "./fetch.ts";

type Call = { readonly url: string; readonly stream: boolean; readonly header: Headers };

/** Assignable to Connect's `Interceptor`. */
export type AuthInterceptor = <Request extends Call, Response>(
  next: (request: Request) => Promise<Response>,
) => (request: Request) => Promise<Response>;

/** Connect's code for a missing or refused credential. */
const UNAUTHENTICATED = 16;

export function authInterceptor({ tokenFor, replace }: TokenSource): AuthInterceptor {
  return (next) => async (request) => {
    const attempt = (token: string) => {
      request.header.set("authorization", `Bearer ${token}`);
      return next(request);
    };
    const token = await tokenFor(request.url);
    try {
      return await attempt(token);
    } catch (error) {
      const refused = (error as { readonly code?: unknown } | undefined)?.code === UNAUTHENTICATED;
      // A stream's messages have been read: its caller decides whether to start it again.
      const other = refused && !request.stream && (await replace(token));
      if (!other) throw error;
      return attempt(other);
    }
  };
}
