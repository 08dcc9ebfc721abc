/** Describes requests and responses of `node:http` with structural types. */
import type { Passage } from "./gate.ts";
import type { PageRequest } from "./sessions.ts";
import type { User } from "./user.ts";

export type NodeRequestLike = {
  readonly method?: string | undefined;
  readonly url?: string | undefined;
  /** The path as the browser sent it, if the framework has changed `url`. */
  readonly originalUrl?: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly socket: { readonly remoteAddress?: string | undefined };
};

export type NodeResponseLike = {
  statusCode: number;
  appendHeader(name: string, value: string | readonly string[]): unknown;
  getHeader(name: string): number | string | readonly string[] | undefined;
  setHeader(name: string, value: string | readonly string[]): unknown;
  writeHead: (status: number) => unknown;
  end(body?: string): unknown;
};

export const users = new WeakMap<object, User>();

/** Returns the user of a request that the adapter of the framework has accepted. */
export const getUser = (request: object): User => users.get(request) ?? { state: "unavailable" };

/** Returns the parts of a request that the kit reads. @param url the path as the browser sent it, if the framework has changed `url` */
export function pageRequestOf({ method = "GET", headers, url = "/" }: NodeRequestLike, originalUrl = url): PageRequest {
  const own = new Headers();
  for (const [name, value] of Object.entries(headers)) {
    // In HTTP/2, Node lists pseudo-headers such as `:path` among the headers. They are left out.
    if (value !== undefined && !name.startsWith(":")) own.set(name, Array.isArray(value) ? value.join(", ") : value);
  }
  const authority = headers[":authority"];
  // Browsers send no `Host` by HTTP/2 (RFC 9113 section 8.3.1).
  if (typeof authority === "string" && !own.has("host")) own.set("host", authority);
  return { method, url: originalUrl, headers: own };
}

/**
 * Keeps the cookies of a refreshed session in the response, whatever headers the application sets later: cookies of the application are
 * added to them, and no cache may store the response. Node.js calls `writeHead` for each response, even if the application does not.
 */
export function keepRenewal(
  { setCookies }: Passage["authentication"],
  response: Pick<NodeResponseLike, "getHeader" | "setHeader" | "writeHead">,
): void {
  if (setCookies.length === 0) return;
  const writeHead: (...given: never[]) => unknown = response.writeHead.bind(response);
  response.writeHead = (...given: unknown[]) => {
    const cookies = given.flatMap(fieldsOf).flatMap(([name, value]) => (name === "set-cookie" ? value : []));
    const own = (cookies.length > 0 ? cookies : [response.getHeader("set-cookie") ?? []]).flat().map(String);
    response.setHeader("set-cookie", [...setCookies.filter((line) => !own.includes(line)), ...own]);
    response.setHeader("cache-control", "private, no-store");
    return writeHead(...(given.map(withoutKept) as never[]));
  };
}

/** Returns the header fields in an argument of `writeHead`: an object, or an array in which each name precedes its value. */
function fieldsOf(given: unknown): readonly (readonly [name: string, value: unknown])[] {
  const flat = Array.isArray(given) ? given : Object.entries(given ?? {}).flat();
  const names = flat.filter((_, index) => index % 2 === 0);
  return names.map((name, index) => [String(name).toLowerCase(), flat[2 * index + 1]]);
}

const KEPT = new Set(["set-cookie", "cache-control"]);

/** Returns an argument of `writeHead` without the headers that this kit has already set. */
function withoutKept(given: unknown): unknown {
  const isOther = (name: unknown) => !KEPT.has(String(name).toLowerCase());
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
    keepRenewal(authentication, response);
    return authentication.user;
  }
  response.statusCode = own.status;
  response.end(await own.text());
  return undefined;
}
