/** Serves the few plain pages of a listener: exact paths, GET and HEAD, no framework. */
import { constants } from "node:http2";
import { patientTimeout } from "../clock/after-reading.ts";
import { type HttpRequest, type HttpResponse, respond, type WritableResponse } from "./handler.ts";
import { WRITE_TIMEOUT_MS } from "./limits.ts";

export type Page = {
  readonly status: number;
  readonly type: string;
  /** The content. Several responses may use the same buffer, so it must not be changed. */
  readonly body: string | Buffer;
  readonly headers?: Readonly<Record<string, string>>;
  /** Called when the response has been sent, or cannot be sent. */
  readonly onClosed?: () => void;
};

export type Render = (request: HttpRequest) => Page | Promise<Page>;
export async function sendPage(render: Render, request: HttpRequest, response: HttpResponse) {
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

/** The liveness page. It does not depend on the store, because otherwise an outage of the store would restart every instance. */
export const healthz = (): Page => ({ status: 200, type: "text/plain", body: "ok\n" });

/** The readiness page, which reports that the process is not stopping, and that `check` resolves. The log has the reason if it does not. */
export async function readyz(check: () => Promise<void>, stopping: () => boolean): Promise<Page> {
  if (stopping()) return { status: 503, type: "text/plain", body: "stopping\n", headers: { "retry-after": "1" } };
  try {
    await check();
    return { status: 200, type: "text/plain", body: "ok\n" };
  } catch {
    return {
      status: 503,
      type: "text/plain",
      body: "the store or the key ring is not available\n",
      headers: { "retry-after": "1" },
    };
  }
}

/** @param maxAge how many seconds caches may keep the document */
export function publicJson(current: () => string, maxAge: number): Page {
  return {
    status: 200,
    type: "application/json",
    body: current(),
    headers: { "cache-control": `public, max-age=${Math.floor(maxAge)}`, "access-control-allow-origin": "*" },
  };
}

/** The body is written in pieces of this size, in bytes, because TLS and HTTP/2 copy all bytes that are passed to one write. */
const PIECE_BYTES = 64 * 1024;

/** Writes a body as fast as the client reads it, and ends the response. If the client reads nothing, the response is cut. */
async function writeSlowly(response: HttpResponse, body: Buffer): Promise<void> {
  for (let at = 0; at < body.length; at += PIECE_BYTES) {
    const piece = body.subarray(at, at + PIECE_BYTES);
    // TypeScript cannot unify the overloads of `write` in the two types.
    const isTaken = "stream" in response ? response.write(piece) : response.write(piece);
    if (!isTaken && !(await drained(response))) return cut(response);
  }
  response.end();
}

/** Resolves with whether the response accepts more bytes. */
function drained(response: HttpResponse): Promise<boolean> {
  return new Promise((resolve) => {
    const settle = (takesMore: boolean) => () => {
      cancelTimeout();
      response.off("drain", onDrain).off("close", onClose);
      resolve(takesMore);
    };
    const onDrain = settle(true);
    const onClose = settle(false);
    const cancelTimeout = patientTimeout(onClose, WRITE_TIMEOUT_MS);
    response.once("drain", onDrain).once("close", onClose);
  });
}

function cut(response: HttpResponse): void {
  if ("stream" in response) response.stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM);
  else response.destroy();
}

/** For how long after it was rendered a page is also sent to further callers (`shareWhileSent`), in ms. */
const SHARED_AGE_MS = 1_000;

/** Shares one copy of a page among all callers while it is being sent. Otherwise many slow readers would keep as many copies in memory. */
export function shareWhileSent(render: () => Promise<Page>): () => Promise<Page> {
  let shared: { readonly page: Promise<Page>; readonly madeAt: number; users: number } | undefined;
  return async () => {
    const now = performance.now();
    if (shared === undefined || shared.users === 0 || now - shared.madeAt >= SHARED_AGE_MS) {
      shared = { page: render(), madeAt: now, users: 0 };
    }
    const taken = shared;
    taken.users++;
    const page = await taken.page;
    return { ...page, onClosed: () => void taken.users-- };
  };
}

/** How long the outcome of a check is reused, in ms. */
const RECENT_MS = 100;

/**
 * Runs a check once at a time, and shares its outcome for 100 ms, because anybody can request the readiness page, and each check of the
 * store costs a write.
 */
export function checkAtIntervals(check: () => Promise<void>, clock = () => performance.now()): () => Promise<void> {
  let last: Promise<void> | undefined;
  let validUntil = 0;
  return () => {
    if (last !== undefined && clock() < validUntil) return last;
    const current = check();
    const end = () => {
      validUntil = clock() + RECENT_MS;
    };
    last = current;
    validUntil = Number.POSITIVE_INFINITY;
    current.then(end, end);
    return current;
  };
}
