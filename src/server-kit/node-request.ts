/** Requests and responses of `node:http`, by shape. */
import type { PageRequest } from "./sessions.ts";

export type NodeRequestLike = {
  readonly method?: string | undefined;
  readonly url?: string | undefined;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly socket: { readonly remoteAddress?: string | undefined };
};

/** @param url the path as the browser sent it, where the framework has changed `url` */
export function pageRequestOf({ method = "GET", headers, url = "/" }: NodeRequestLike, originalUrl = url): PageRequest {
  const own = new Headers();
  for (const [name, value] of Object.entries(headers)) {
    // HTTP/2 has `:path` and the like among them.
    if (value !== undefined && !name.startsWith(":")) own.set(name, Array.isArray(value) ? value.join(", ") : value);
  }
  return { method, url: originalUrl, headers: own };
}
