import type { IncomingMessage, ServerResponse } from "node:http";
import { type AdapterOptions, authorize } from "./bearer.ts";
import type { Claims } from "./verdict.ts";
import type { Verifier } from "./verifier.ts";

const claimsByRequest = new WeakMap<object, Claims>();

/** Returns the claims of a request that the middleware or the hook has accepted; undefined for any other request. */
export function getCallerClaims(request: object): Claims | undefined {
  return claimsByRequest.get(request);
}

/**
 * Returns middleware that requires a valid access token, for Express and other frameworks whose middleware takes `(request, response,
 * next)`.
 *
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
export function accessTokenMiddleware(verifier: Verifier, { origin }: AdapterOptions = {}) {
  return async (request: IncomingMessage, response: ServerResponse, next: () => void): Promise<void> => {
    const caller = await authorize(verifier, credentialOf(request, origin));
    if (!caller.ok) {
      response.writeHead(caller.status, caller.headers).end(caller.body);
      return;
    }
    claimsByRequest.set(request, caller.claims);
    next();
  };
}

/** `originalUrl` has the whole URL in frameworks that shorten `url` for their handlers. */
type HookedRequest = Pick<IncomingMessage, "headers" | "method" | "url"> & { readonly originalUrl?: string };

function credentialOf({ method = "", url, originalUrl = url, headers }: HookedRequest, origin: string | undefined) {
  if (origin === undefined) return headers.authorization;
  const get = (name: string) => headers[name]?.toString() ?? null;
  return { method, url: urlAt(origin, originalUrl), headers: { get } };
}

/**
 * Returns the URL of a request target, which is a path or a whole URL (RFC 9112 section 3.2). For any other target, returns an empty
 * string, for which no proof is valid.
 */
function urlAt(origin: string, target = ""): string {
  const path = target.replace(/^https?:\/\/[^/?#]*/i, "");
  return path.startsWith("/") ? origin + path : "";
}

/** The methods of a Fastify reply that the hook calls. */
type Reply = {
  code(status: number): Reply;
  headers(values: Record<string, string>): Reply;
  send(body: string): unknown;
};

/**
 * Returns a Fastify hook that requires a valid access token.
 *
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
export function accessTokenHook(verifier: Verifier, { origin }: AdapterOptions = {}) {
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
