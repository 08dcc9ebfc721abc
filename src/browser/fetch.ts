/** `fetch` with the access token: sent to known origins only, renewed once when a service refuses it. */
import type { Realm } from "./realm.ts";

/** Where an access token comes from, and what replaces one that a service refused. */
export type TokenSource = {
  accessToken(): Promise<string>;
  /** Another token than `text`, if there is one. */
  replace(text: string): Promise<string | undefined>;
};

/** @param origins absolute URLs whose origins may see the token, beside the page's */
export function authorizedFetch(source: TokenSource, realm: Realm, origins: readonly string[]) {
  return async (input: string | URL | Request, init?: RequestInit): Promise<Response> => {
    const request = new Request(input, init);
    const { origin } = new URL(request.url);
    if (![realm.location?.origin, ...origins].some((known) => known && new URL(known).origin === origin)) {
      throw new TypeError(`no token for ${origin}`);
    }
    const attempt = (one: Request, text: string) => {
      one.headers.set("authorization", `Bearer ${text}`);
      return realm.fetch(one);
    };
    // Made before the body is read.
    const retry = request.clone();
    const token = await source.accessToken();
    const response = await attempt(request, token);
    const other = response.status === 401 && (await source.replace(token));
    if (!other) return response;
    await response.body?.cancel();
    return attempt(retry, other);
  };
}
