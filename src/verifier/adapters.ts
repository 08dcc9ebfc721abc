/** Adapters that require an access token for each request: for Connect, for Express and the like, and for Fastify. */
import type { IncomingMessage, ServerResponse } from "node:http";
import {
  Code,
  ConnectError,
  type ContextValues,
  createContextKey,
  createContextValues,
  type Interceptor,
} from "@connectrpc/connect";
import { type AdapterOptions, authorize } from "./authorize.ts";
import { readOrigin } from "./origin.ts";
import type { Claims } from "./verdict.ts";
import type { Decider } from "./verifier.ts";

/** The key under which a Connect handler finds the claims of the caller: `context.values.get(callerClaims)`. */
export const callerClaims = createContextKey<Claims | undefined>(undefined, {
  description: "claims of the access token",
});

const rawRequest = createContextKey<HookedRequest | undefined>(undefined, { description: "request of the framework" });

/**
 * Returns context values by which `accessTokenInterceptor` sees all headers of a request. Without them it sees the first header
 * `Authorization` alone, because Node drops the others, and a proxy may have read another one. For the option `contextValues` of Connect's
 * adapters for Node, Express and Fastify.
 */
export const keepRawHeaders = (request: HookedRequest): ContextValues => createContextValues().set(rawRequest, request);

/**
 * Requires a valid access token for every RPC of a Connect server; otherwise `unauthenticated` with a challenge, or
 * `unavailable` with `Retry-After`.
 * @throws TypeError if `origin` is not an origin
 * @example
 * ```ts
 * import { createServer } from "node:http";
 * import { connectNodeAdapter } from "@connectrpc/connect-node";
 * import { accessTokenInterceptor, keepRawHeaders, type Verifier } from "@session-service/verifier";
 *
 * const serve = (verifier: Verifier) => {
 *   const interceptors = [accessTokenInterceptor(verifier)];
 *   return createServer(connectNodeAdapter({ routes: () => {}, interceptors, contextValues: keepRawHeaders }));
 * };
 * ```
 */
export function accessTokenInterceptor(verifier: Decider, options: AdapterOptions = {}): Interceptor {
  const origin = readOrigin(options);
  return (next) => async (request) => {
    const { requestMethod: method, url, header: headers, contextValues } = request;
    const raw = contextValues.get(rawRequest);
    const authorization = raw && authorizationOf(raw);
    if (authorization !== undefined) headers.set("authorization", authorization);
    const given =
      origin === undefined ? headers.get("authorization") : { method, url: origin + new URL(url).pathname, headers };
    const caller = await authorize(verifier, given);
    if (!caller.ok) {
      const { "content-type": _, ...headers } = caller.headers;
      throw caller.status === 401
        ? new ConnectError("authentication failed", Code.Unauthenticated, headers)
        : new ConnectError("temporarily unavailable", Code.Unavailable, headers);
    }
    contextValues.set(callerClaims, caller.claims);
    return next(request);
  };
}

const claimsByRequest = new WeakMap<object, Claims>();

/** Returns the claims of a request that the middleware or the hook has accepted; undefined for any other request. */
export function getCallerClaims(request: object): Claims | undefined {
  return claimsByRequest.get(request);
}

/**
 * Returns middleware that requires a valid access token, for Express and other frameworks whose middleware takes `(request, response,
 * next)`.
 * @throws TypeError if `origin` is not an origin
 * @example
 * ```ts
 * import { createServer } from "node:http";
 * import { accessTokenMiddleware, getCallerClaims, type Verifier } from "@session-service/verifier";
 *
 * const serve = (verifier: Verifier) => {
 *   const authenticate = accessTokenMiddleware(verifier); // with Express: app.use(authenticate)
 *   return createServer((request, response) =>
 *     authenticate(request, response, () => response.end(`hello ${getCallerClaims(request)?.sub}`)),
 *   );
 * };
 * ```
 */
export function accessTokenMiddleware(verifier: Decider, options: AdapterOptions = {}) {
  const origin = readOrigin(options);
  return async (request: IncomingMessage, response: ServerResponse, next: () => void): Promise<void> => {
    const caller = await authorize(verifier, credentialOf(request, origin));
    if (!caller.ok) {
      // A time limit of the application may have responded meanwhile. Then a second head would be an error that nobody catches.
      if (!response.headersSent) response.writeHead(caller.status, caller.headers).end(caller.body);
      return;
    }
    claimsByRequest.set(request, caller.claims);
    next();
  };
}

/** `originalUrl` has the whole URL in frameworks that shorten `url` for their handlers. */
type HookedRequest = Pick<IncomingMessage, "headers" | "method" | "url"> & {
  readonly originalUrl?: string;
  readonly rawHeaders?: readonly string[];
  /** Node's request, in Fastify. */
  readonly raw?: { readonly rawHeaders?: readonly string[] };
};

function credentialOf(request: HookedRequest, origin: string | undefined) {
  const { method = "", url, originalUrl = url, headers } = request;
  const authorization = authorizationOf(request);
  if (origin === undefined) return authorization;
  const get = (name: string) => (name === "authorization" ? authorization : headers[name]?.toString()) ?? null;
  return { method, url: urlAt(origin, originalUrl), headers: { get } };
}

/**
 * Returns the header `Authorization`. Node keeps only the first of several, but a proxy may have read another one. So several are joined
 * with commas, as other servers join them, and are refused.
 */
function authorizationOf({ headers, raw, rawHeaders = raw?.rawHeaders ?? [] }: HookedRequest): string | undefined {
  let count = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] as string;
    if (name.length === AUTHORIZATION.length && name.toLowerCase() === AUTHORIZATION) count++;
  }
  return count > 1 ? Array(count).fill(headers.authorization).join(", ") : headers.authorization;
}

const AUTHORIZATION = "authorization";

/**
 * Returns the URL of a request target (RFC 9112 section 3.2: a path or a URL); otherwise an empty string, for which no proof is valid.
 * Node has decoded each byte of the target as a character of its own, so that those beyond ASCII are escaped byte by byte.
 */
function urlAt(origin: string, target = ""): string {
  const path = target.replace(/^https?:\/\/[^/?#]*/i, "");
  return path.startsWith("/") ? origin + path.replace(/[\x80-\xff]/g, escapeByte) : "";
}

const escapeByte = (character: string) => `%${character.charCodeAt(0).toString(16)}`;

/** The methods of a Fastify reply that the hook calls. */
type Reply = {
  code(status: number): Reply;
  headers(values: Record<string, string>): Reply;
  send(body: string): unknown;
};

/**
 * Returns a Fastify hook that requires a valid access token.
 * @throws TypeError if `origin` is not an origin
 * @example
 * ```ts
 * import Fastify from "fastify";
 * import { accessTokenHook, getCallerClaims, type Verifier } from "@session-service/verifier";
 *
 * const serve = (verifier: Verifier) => {
 *   const app = Fastify();
 *   app.addHook("onRequest", accessTokenHook(verifier));
 *   app.get("/", (request) => `hello ${getCallerClaims(request)?.sub}`);
 *   return app;
 * };
 * ```
 */
export function accessTokenHook(verifier: Decider, options: AdapterOptions = {}) {
  const origin = readOrigin(options);
  return async (request: HookedRequest, reply: Reply): Promise<unknown> => {
    const caller = await authorize(verifier, credentialOf(request, origin));
    if (!caller.ok) {
      return reply
        .code(caller.status)
        .headers({ ...caller.headers })
        .send(caller.body);
    }
    claimsByRequest.set(request, caller.claims);
    return undefined;
  };
}
