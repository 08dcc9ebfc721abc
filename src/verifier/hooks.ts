import type { IncomingMessage, ServerResponse } from "node:http";
import { authorize } from "./bearer.ts";
import type { Claims } from "./verdict.ts";
import type { Verifier } from "./verifier.ts";

const callers = new WeakMap<object, Claims>();

/** Who sent a request that one of the hooks below let through. */
export function callerOf(request: object): Claims | undefined {
  return callers.get(request);
}

/** For Express and whatever else takes `(request, response, next)`: `app.use(accessTokenMiddleware(verifier))`. */
export function accessTokenMiddleware(verifier: Verifier) {
  return async (request: IncomingMessage, response: ServerResponse, next: () => void): Promise<void> => {
    const caller = await authorize(verifier, request.headers.authorization);
    if (!("claims" in caller)) {
      response.writeHead(caller.status, caller.headers).end(caller.body);
      return;
    }
    callers.set(request, caller.claims);
    next();
  };
}

/** What the hook uses of a Fastify reply. */
type Reply = {
  code(status: number): Reply;
  headers(values: Record<string, string>): Reply;
  send(body: string): unknown;
};

/** For Fastify: `app.addHook("onRequest", accessTokenHook(verifier))`. */
export function accessTokenHook(verifier: Verifier) {
  return async (request: Pick<IncomingMessage, "headers">, reply: Reply): Promise<unknown> => {
    const caller = await authorize(verifier, request.headers.authorization);
    if (!("claims" in caller))
      return reply
        .code(caller.status)
        .headers({ ...caller.headers })
        .send(caller.body);
    callers.set(request, caller.claims);
    return undefined;
  };
}
