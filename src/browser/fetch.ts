/** `fetch` with the access token: sent to known origins only, renewed once when a service refuses it. */
import type { Realm } from "./realm.ts";

/** Where an access token comes from, and what replaces one that a service refused. */
export type TokenSource = {
  /** @throws TypeError for a URL whose origin must not see it */
  tokenFor(url: string): Promise<string>;
  /** Another token than `text`, if there is one. */
  replace(text: string): Promise<string | undefined>;
};

export function authorizedFetch({ tokenFor, replace }: TokenSource, realm: Realm) {
  return async (input: string | URL | Request, init?: RequestInit): Promise<Response> => {
    const request = new Request(input, init);
    const attempt = (one: Request, text: string) => {
      one.headers.set("authorization", `Bearer ${text}`);
      return realm.fetch(one);
    };
    // Made before the body is read.
    const retry = request.clone();
    const token = await tokenFor(request.url);
    const response = await attempt(request, token);
    const other = response.status === 401 && (await replace(token));
    if (!other) return response;
    return attempt(retry, other);
  };
}
