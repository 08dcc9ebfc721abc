/** Describes requests and responses of `node:http` with structural types. */
import type { Passage } from "./gate.ts";
import type { PageRequest, User } from "./sessions.ts";

export type NodeRequestLike = {
  readonly method?: string | undefined;
  readonly url?: string | undefined;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly socket: { readonly remoteAddress?: string | undefined };
};

export type NodeResponseLike = {
  statusCode: number;
  appendHeader(name: string, value: string | readonly string[]): unknown;
  end(body?: string): unknown;
};

/** Returns the parts of a request that the kit reads. @param url the path as the browser sent it, if the framework has changed `url` */
export function pageRequestOf({ method = "GET", headers, url = "/" }: NodeRequestLike, originalUrl = url): PageRequest {
  const own = new Headers();
  for (const [name, value] of Object.entries(headers)) {
    // In HTTP/2 the headers include pseudo-headers such as `:path`.
    if (value !== undefined && !name.startsWith(":")) own.set(name, Array.isArray(value) ? value.join(", ") : value);
  }
  return { method, url: originalUrl, headers: own };
}

/** Applies the decision of a gate to a response. @returns the user, if the application must handle the request */
export async function writePassage(
  { authentication, response: own }: Passage,
  response: NodeResponseLike,
): Promise<User | undefined> {
  for (const [name, value] of own?.headers ?? authentication.responseHeaders) response.appendHeader(name, value);
  if (!own) return authentication.user;
  response.statusCode = own.status;
  response.end(await own.text());
  return undefined;
}
