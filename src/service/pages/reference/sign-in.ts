/**
 * Serves "Sign in as …" of the reference page, for development: it creates a session for any subject. It is available only if no setting
 * suggests a deployment, and requires a key that the service prints at its start. So it stays closed to others behind an unknown proxy.
 */
import { timingSafeEqual } from "node:crypto";
import type { HttpRequest, HttpResponse, Route } from "../../../platform/listener/handler.ts";
import { readBody, sendJson } from "../../../platform/listener/json.ts";
import { NodeRequestSource } from "../../../platform/listener/request-source.ts";

const PATH = "/docs/sign-in";
const MAX_BODY_BYTES = 2_048;

type Visitor = {
  readonly subject: string;
  readonly userAgent: string;
  readonly address: () => string | undefined;
};

export type DocsSignInDeps = {
  /** The key that the service prints at its start. */
  readonly key: string;
  /** Whether a host name or an address is this machine. */
  readonly isLoopback: (host: string) => boolean;
  /** Creates a session. Returns undefined if too many were created. */
  readonly createSession: (
    visitor: Visitor,
  ) => Promise<{ readonly accessToken: string; readonly cookies: string[] } | undefined>;
};

export function docsSignInRoute(deps: DocsSignInDeps): Route {
  const serve = (request: HttpRequest, response: HttpResponse) => {
    signIn(deps, request, response).catch(() => response.destroy());
  };
  return ({ url, method }) => (url === PATH && method === "POST" ? serve : undefined);
}

async function signIn(deps: DocsSignInDeps, request: HttpRequest, response: HttpResponse): Promise<void> {
  if (!isAllowed(deps, request)) return sendJson(response, 403, {});
  const subject = subjectIn((await readBody(request, MAX_BODY_BYTES)) ?? "");
  if (subject === undefined) return sendJson(response, 400, {});
  const source = new NodeRequestSource(request, 0);
  const userAgent = (request.headers["user-agent"] ?? "").slice(0, 512);
  const created = await deps.createSession({ subject, userAgent, address: () => source.address() });
  if (created === undefined) return sendJson(response, 429, {});
  sendJson(response, 200, { accessToken: created.accessToken }, { "set-cookie": created.cookies });
}

/** Checks that a page on this machine has sent the key without a proxy, and that the host is no foreign name (DNS rebinding). */
function isAllowed({ key, isLoopback }: DocsSignInDeps, { headers, socket }: HttpRequest): boolean {
  const given = Buffer.from(String(headers["x-docs-key"] ?? ""));
  const expected = Buffer.from(key);
  if (given.length !== expected.length || !timingSafeEqual(given, expected)) return false;
  if (headers["x-forwarded-for"] !== undefined || headers.forwarded !== undefined) return false;
  const authority = headers[":authority"] ?? headers.host;
  const host = typeof authority === "string" ? URL.parse(`http://${authority}`)?.hostname : undefined;
  return host !== undefined && isLoopback(host) && isLoopback(socket.remoteAddress ?? "");
}

/** Returns the subject in a body; undefined unless it has 1 to 255 bytes and no control characters, as in `CreateSession`. */
function subjectIn(body: string): string | undefined {
  try {
    const { subject } = JSON.parse(body) as { readonly subject?: unknown };
    if (typeof subject !== "string" || subject === "" || !subject.isWellFormed()) return undefined;
    return Buffer.byteLength(subject) > 255 || /\p{Cc}/u.test(subject) ? undefined : subject;
  } catch {
    return undefined;
  }
}
