/** Serves the few plain pages of a listener: exact paths, GET and HEAD, no framework. */
import { type Handler, type Request, type Response, respond, type WritableResponse } from "./exchange.ts";
import type { SecurityHeaders } from "./security-headers.ts";
import { writeSlowly } from "./write-slowly.ts";

export type Page = {
  readonly status: number;
  readonly type: string;
  /** The body. All responses may share one buffer. */
  readonly body: string | Buffer;
  readonly headers?: Readonly<Record<string, string>>;
  /** Called when the response has been sent, or cannot be sent. */
  readonly onClosed?: () => void;
};

export type Render = (request: Request) => Page | Promise<Page>;
type Pages = ReadonlyMap<string, Render>;

export function withPages(pages: Pages, headersFor: SecurityHeaders, next: Handler): Handler {
  return (request: Request, response: Response) => {
    const page = pages.get(pathOf(request.url ?? ""));
    if (page === undefined) return next(request, response);
    for (const [name, value] of headersFor(request)) response.setHeader(name, value);
    if (request.method !== "GET" && request.method !== "HEAD") {
      return respond(response, request.method === "OPTIONS" ? 204 : 405, { allow: "GET, HEAD, OPTIONS" });
    }
    send(page, request, response).catch(() => response.destroy());
  };
}

function pathOf(target: string): string {
  const query = target.indexOf("?");
  return query < 0 ? target : target.slice(0, query);
}

async function send(render: Render, request: Request, response: Response) {
  const page = await render(request);
  if (page.onClosed !== undefined) response.once("close", page.onClosed);
  const headers = {
    "content-type": page.type,
    "content-length": Buffer.byteLength(page.body),
    ...page.headers,
  };
  if (request.method === "HEAD") respond(response, page.status, headers);
  else if (typeof page.body === "string") respond(response, page.status, headers, page.body);
  else {
    const head: WritableResponse = response;
    head.writeHead(page.status, headers);
    await writeSlowly(response, page.body);
  }
}

/**
 * Returns the liveness page, which reports that the process responds. It does not depend on the store, because otherwise an outage of the
 * store would restart every instance.
 */
export const healthz = (): Page => ({ status: 200, type: "text/plain", body: "ok\n" });

/** The readiness page, which reports that the store is available and the process is not stopping. */
export async function readyz(ping: () => Promise<void>, stopping: () => boolean): Promise<Page> {
  if (stopping()) return { status: 503, type: "text/plain", body: "stopping\n", headers: { "retry-after": "1" } };
  try {
    await ping();
    return { status: 200, type: "text/plain", body: "ok\n" };
  } catch {
    return { status: 503, type: "text/plain", body: "the store is not available\n", headers: { "retry-after": "1" } };
  }
}

/** Returns a public document, such as the public keys. @param maxAge how many seconds caches may keep it */
export function publicJson(current: () => string, maxAge: number): Page {
  return {
    status: 200,
    type: "application/json",
    body: current(),
    headers: { "cache-control": `public, max-age=${Math.floor(maxAge)}`, "access-control-allow-origin": "*" },
  };
}
