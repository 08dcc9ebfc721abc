/**
 * Adds the access token to calls: of `fetch`, and of Connect, whose types are structural here, so that the kit does not depend on it. The
 * token is sent only to known origins, and is renewed once if a service refuses it.
 */
import type { Realm } from "./realm.ts";

/**
 * Returns the access token for a URL.
 * @throws TypeError for an origin that must not receive it, and for the mode `no-cors`, in which browsers drop it silently
 */
type TokenFor = (url: string, mode?: string) => Promise<string>;

/** Returns another token than the one that a service refused, if it can get one. */
type Replace = (text: string) => Promise<string | undefined>;

/** Rejects when `signal` is aborted, so that a caller which gives up need not wait. After that, `run` is not called any more. */
const abortable = <T>(signal: AbortSignal, run: () => Promise<T>): Promise<T> =>
  new Promise((resolve, reject) => {
    signal.throwIfAborted();
    // A signal may live as long as the page, and browsers keep all of its listeners, also those of requests that follow it.
    const abort = () => reject(signal.reason);
    run()
      .then(resolve, reject)
      .then(() => signal.removeEventListener("abort", abort));
    signal.addEventListener("abort", abort);
  });

export const bearer = (token: string): string => `Bearer ${token}`;

export function authorizedFetch(tokenFor: TokenFor, replace: Replace, realm: Pick<Realm, "fetch">) {
  return async (input: string | URL | Request, init: RequestInit = {}): Promise<Response> => {
    // The body of a Request can be read only once. A body in `init` can be sent again, unless it is a stream.
    const again = !init.body && input instanceof Request ? input.clone() : input;
    const request = new Request(input, init);
    const { signal } = request;
    const attempt = (one: Request, token: string) => {
      one.headers.set("authorization", bearer(token));
      return realm.fetch(one);
    };
    const token = await abortable(signal, () => tokenFor(request.url, request.mode));
    const response = await attempt(request, token);
    const other = response.status === 401 && (await abortable(signal, () => replace(token)));
    return other && !(init.body instanceof ReadableStream) ? attempt(new Request(again, init), other) : response;
  };
}

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
    const { signal } = request;
    const token = await abortable(signal, () => tokenFor(request.url));
    try {
      return await attempt(token);
    } catch (error) {
      const refused = (error as { readonly code?: unknown } | undefined)?.code === UNAUTHENTICATED;
      const other = refused && (await abortable(signal, () => replace(token)));
      // Messages of a stream have been read already, so the caller decides whether to start it again.
      if (!other || request.stream) throw error;
      return attempt(other);
    }
  };
}
