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
  setHeader(name: string, value: string): unknown;
  writeHead: (status: number) => unknown;
  end(body?: string): unknown;
};

/** Returns the parts of a request that the kit reads. @param url the path as the browser sent it, if the framework has changed `url` */
export function pageRequestOf({ method = "GET", headers, url = "/" }: NodeRequestLike, originalUrl = url): PageRequest {
  const own = new Headers();
  for (const [name, value] of Object.entries(headers)) {
    // In HTTP/2 the headers include pseudo-headers such as `:path`.
    if (value !== undefined && !name.startsWith(":")) own.set(name, Array.isArray(value) ? value.join(", ") : value);
  }
  const authority = headers[":authority"];
  // Browsers send no `Host` by HTTP/2 (RFC 9113 section 8.3.1).
  if (typeof authority === "string" && !own.has("host")) own.set("host", authority);
  return { method, url: originalUrl, headers: own };
}

/**
 * Prevents caches from keeping a response that sets cookies, whatever the application sets later. Node.js calls `writeHead` for each
 * response, also where the application does not.
 */
export function forbidCaching(
  { setCookies }: Passage["authentication"],
  response: Pick<NodeResponseLike, "setHeader" | "writeHead">,
): void {
  if (setCookies.length === 0) return;
  const writeHead: (...given: never[]) => unknown = response.writeHead.bind(response);
  response.writeHead = (...given: unknown[]) => {
    response.setHeader("cache-control", "private, no-store");
    return writeHead(...(given.map(withoutCacheControl) as never[]));
  };
}

/** Returns an argument of `writeHead`. Headers are an object, or an array in which each name precedes its value. */
function withoutCacheControl(given: unknown): unknown {
  const isOther = (name: unknown) => String(name).toLowerCase() !== "cache-control";
  if (Array.isArray(given)) return given.filter((_, index) => isOther(given[index - (index % 2)]));
  if (typeof given !== "object" || given === null) return given;
  return Object.fromEntries(Object.entries(given).filter(([name]) => isOther(name)));
}

/** Applies the decision of a gate to a response. @returns the user, if the application must handle the request */
export async function writePassage(
  { authentication, response: own }: Passage,
  response: NodeResponseLike,
): Promise<User | undefined> {
  for (const [name, value] of own?.headers ?? authentication.responseHeaders) response.appendHeader(name, value);
  if (!own) {
    forbidCaching(authentication, response);
    return authentication.user;
  }
  response.statusCode = own.status;
  response.end(await own.text());
  return undefined;
}
