/**
 * "Sign in as …" of the reference page, for development: it creates a session of any subject and sets its cookie.
 *
 * It is there only where nothing suggests a deployment, and needs a key that the service prints at its start: a proxy in front that
 * nobody configured here opens it to no one.
 */
import { timingSafeEqual } from "node:crypto";
import { isIP } from "node:net";
import type { RefreshCookie } from "../api/public/cookie.ts";
import type { Config } from "../config/config.ts";
import { type Handler, type Request, type Response, respond } from "../listener/exchange.ts";
import { NodeRequestSource } from "../listener/request-source.ts";
import type { SecurityHeaders } from "../listener/security-headers.ts";
import type { Requester } from "../session/audit.ts";
import { create } from "../session/create.ts";
import { hasOwnAdminToken } from "./secrets.ts";

const PATH = "/docs/sign-in";
const MAX_BODY_BYTES = 2_048;

export type SignInDeps = Parameters<typeof create>[0] & {
  readonly cookie: RefreshCookie;
  readonly audience: string;
  /** Printed at the start. */
  readonly key: string;
};

/** Whether this is a start as a newcomer makes it: on the embedded store, for this machine alone, with nothing of a deployment set. */
export function mayOfferSignIn(config: Config): boolean {
  const { redis, docs, host, tlsCertFile, trustProxy, issuer, audiences, allowedOrigins, cookie } = config;
  const isDeployed =
    redis !== undefined ||
    !hasOwnAdminToken(config) ||
    tlsCertFile !== undefined ||
    trustProxy > 0 ||
    issuer !== undefined ||
    audiences !== undefined ||
    allowedOrigins.length > 0 ||
    cookie.domain !== undefined;
  return docs && !isDeployed && isLoopback(host);
}

export function withSignIn(config: Config, deps: SignInDeps, headersFor: SecurityHeaders, next: Handler): Handler {
  return (request, response) => {
    if (request.url !== PATH || request.method !== "POST") return next(request, response);
    for (const [name, value] of headersFor(request)) response.setHeader(name, value);
    signIn(config, deps, request, response).catch(() => response.destroy());
  };
}

async function signIn(config: Config, deps: SignInDeps, request: Request, response: Response): Promise<void> {
  if (!isAllowed(request, deps.key)) return sendJson(response, 403, {});
  const subject = subjectIn(await readBody(request));
  if (subject === undefined) return sendJson(response, 400, {});
  const source = new NodeRequestSource(request, 0);
  const requester: Requester = { address: () => source.address(), adminName: "docs" };
  const userAgent = (request.headers["user-agent"] ?? "").slice(0, 512);
  const wanted = {
    subject,
    clientId: deps.audience,
    audience: deps.audience,
    claims: "{}",
    client: { userAgent, ipAddress: source.address() ?? "", displayName: "API reference" },
    idleTimeoutMs: config.sessionIdleTtlMs,
    absoluteLifetimeMs: config.sessionAbsoluteTtlMs,
  };
  const created = await create(deps, wanted, requester);
  if (!created.ok) return sendJson(response, 429, {});
  const { accessToken, refreshToken, secondsLeft, session } = created;
  const cookies = deps.cookie.set(refreshToken, secondsLeft, session.sid);
  sendJson(response, 200, { accessToken: accessToken.token }, [...cookies]);
}

/** The key, sent by a page of this machine: no proxy has passed it on, and no other name leads here (DNS rebinding). */
function isAllowed({ headers, socket }: Request, key: string): boolean {
  const given = Buffer.from(String(headers["x-docs-key"] ?? ""));
  const expected = Buffer.from(key);
  if (given.length !== expected.length || !timingSafeEqual(given, expected)) return false;
  if (headers["x-forwarded-for"] !== undefined || headers.forwarded !== undefined) return false;
  const authority = headers[":authority"] ?? headers.host;
  const host = typeof authority === "string" ? URL.parse(`http://${authority}`)?.hostname : undefined;
  return host !== undefined && isLoopback(host) && isLoopback(socket.remoteAddress ?? "");
}

function isLoopback(host: string): boolean {
  const name = host.replace(/^\[(.*)\]$/, "$1").replace(/^::ffff:/, "");
  return name === "localhost" || name === "::1" || (isIP(name) === 4 && name.startsWith("127."));
}

/** 1 to 255 bytes without control characters, as `CreateSession` has it. */
function subjectIn(body: string): string | undefined {
  try {
    const { subject } = JSON.parse(body) as { readonly subject?: unknown };
    if (typeof subject !== "string" || subject === "" || !subject.isWellFormed()) return undefined;
    return Buffer.byteLength(subject) > 255 || /\p{Cc}/u.test(subject) ? undefined : subject;
  } catch {
    return undefined;
  }
}

/** As far as it is not too long. */
async function readBody(request: Request): Promise<string> {
  let text = "";
  for await (const chunk of request as AsyncIterable<Buffer>) {
    text += chunk.toString("latin1");
    if (text.length > MAX_BODY_BYTES) return "";
  }
  return Buffer.from(text, "latin1").toString();
}

function sendJson(response: Response, status: number, value: unknown, cookies: string[] = []): void {
  const body = JSON.stringify(value);
  const fields = { "content-type": "application/json", "content-length": Buffer.byteLength(body) };
  respond(
    response,
    status,
    { ...fields, "cache-control": "no-store", ...(cookies.length > 0 && { "set-cookie": cookies }) },
    body,
  );
}
