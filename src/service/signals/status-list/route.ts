/** Serves the status lists over HTTP (draft-ietf-oauth-status-list-20 section 8). */
import {
  type Handler,
  type Request,
  type Responder,
  type Response,
  type Route,
  respond,
} from "../../../platform/listener/exchange.ts";
import type { WallClock } from "../../session/time.ts";
import { LISTS_PATH, type SignedList, type StatusLists } from "./status-lists.ts";

const TYPE = "application/statuslist+jwt";
const METHODS = { allow: "GET, HEAD, OPTIONS" };
/** Lists are public, so requests need no credentials and pages of any origin may read the responses. */
const SHARED = { "access-control-allow-origin": "*", "access-control-expose-headers": "ETag", vary: "Accept" };

/** The response to a preflight. Verifiers in browsers revalidate lists themselves, and browsers ask before they send `If-None-Match`. */
const PREFLIGHT = {
  ...METHODS,
  "access-control-allow-origin": "*",
  "access-control-allow-headers": "If-None-Match",
  "access-control-max-age": "7200",
};

type Deps = {
  readonly lists: Pick<StatusLists, "get">;
  readonly wallClock: WallClock;
  readonly notFound: Responder;
  readonly unavailable: Responder;
};

export function statusListRoute(deps: Deps): Route {
  const serve: Handler = (request, response) => serveList(deps, request, response);
  return ({ url }) => (url?.startsWith(LISTS_PATH) ? serve : undefined);
}

function serveList(deps: Deps, request: Request, response: Response): void {
  const { method } = request;
  if (method === "OPTIONS") respond(response, 204, PREFLIGHT);
  else if (method === "GET" || method === "HEAD") serveGet(deps, request, response);
  else respond(response, 405, METHODS);
}

function serveGet({ lists, wallClock, notFound, unavailable }: Deps, request: Request, response: Response): void {
  const { method, headers } = request;
  const [name = "", query = ""] = (request.url ?? "").slice(LISTS_PATH.length).split("?", 2);
  const list = lists.get(name);
  if (list === undefined) notFound(request, response);
  // Past versions of a list are not kept (section 8.4).
  else if (new URLSearchParams(query).has("time")) respond(response, 501, {});
  else if (!accepts(headers.accept)) respond(response, 406, SHARED);
  else if (list === "unavailable") {
    response.setHeader("retry-after", "1");
    unavailable(request, response);
  } else {
    const cacheControl = `public, max-age=${maxAge(list, wallClock())}`;
    const head = { ...SHARED, etag: list.etag, "cache-control": cacheControl };
    const full = { ...head, "content-type": TYPE, "content-length": list.token.length };
    if (isSame(headers["if-none-match"], list.etag)) respond(response, 304, head);
    else respond(response, 200, full, method === "HEAD" ? undefined : list.token);
  }
}

/** Returns how many seconds caches may keep a list: never longer than its time to live, even if the clock was just set back. */
function maxAge({ nextAt, ttlMs }: SignedList, now: number): number {
  return Math.max(1, Math.ceil(Math.min(nextAt - now, ttlMs) / 1000));
}

/** Returns whether a client accepts a list as a JWT, the only form that the service offers (RFC 9110 section 12.5.1). */
function accepts(accept = "*/*"): boolean {
  const ranges = accept.split(",").map((range) => range.trim().toLowerCase());
  return ranges.some((range) => {
    const [type = "", ...parameters] = range.split(";").map((part) => part.trim());
    const isRefused = parameters.some((parameter) => /^q=0(\.0{0,3})?$/.test(parameter));
    return !isRefused && [TYPE, "application/*", "*/*"].includes(type);
  });
}

/** Returns whether two entity tags are equal in the weak comparison (RFC 9110 section 13.1.2). */
function isSame(given: string | undefined, etag: string): boolean {
  if (given === undefined) return false;
  const opaque = etag.slice(2);
  return given.split(",").some((tag) => tag.trim().replace(/^W\//, "") === opaque || tag.trim() === "*");
}
