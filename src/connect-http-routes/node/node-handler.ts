import { createRequestHandler } from "../handler.ts";
import type { HandlerOptions } from "../options.ts";
import { METHOD_OVERRIDE } from "../routes/method-override.ts";
import { NodeExchange, type NodeRequest } from "./node-exchange.ts";
import type { NodeResponse } from "./node-response.ts";

/** A request listener for `http.createServer` and `http2.createServer`, and for Express, whose `next` it calls for other requests. */
export type NodeHandler = (request: NodeRequest, response: NodeResponse, next?: () => void) => void;

export type HttpHandlerOptions = HandlerOptions<NodeRequest> & {
  /** Handles requests that match no route. Default: `next` of the framework, or else a 404 from the failure encoder. */
  readonly fallback?: NodeHandler;
};

/** Serves route tables on node:http, node:https and node:http2 (compatibility API). */
export function createHttpHandler(options: HttpHandlerOptions): NodeHandler {
  const handler = createRequestHandler(options);
  const { methodOverride } = handler;
  return (request, response, next) => {
    const target = originForm(request.url ?? "/");
    const mark = target.indexOf("?");
    const path = mark === -1 ? target : target.slice(0, mark);
    let { method = "GET" } = request;
    if (methodOverride !== undefined) method = methodOverride(method, overrideIn(request), path);
    const match = handler.match(method, path);
    if (match.kind === "no_route") {
      if (options.fallback !== undefined) return options.fallback(request, response, next);
      if (next !== undefined) return next();
    }
    const query = mark === -1 ? "" : target.slice(mark + 1);
    void handler.serve(new NodeExchange(request, response, target, method), match, query);
  };
}

function overrideIn({ headers }: NodeRequest): string | undefined {
  const override = headers[METHOD_OVERRIDE];
  return typeof override === "string" ? override : undefined;
}

/**
 * Returns the path and query of a request target, not decoded. Servers must accept the absolute form too (RFC 9112 section 3.2.2).
 * Non-ASCII bytes, which are invalid in a target, are percent-encoded.
 */
function originForm(url: string): string {
  const target = url.charCodeAt(0) === 0x2f ? url : url.replace(/^https?:\/\/[^/?#]*\/?/i, "/");
  return /^[\0-\x7f]*$/.test(target) ? target : target.replace(/[^\0-\x7f]/gu, escapeByte);
}

function escapeByte(character: string): string {
  // Node decodes HTTP/1 targets as Latin-1, so each character is one byte.
  const code = character.charCodeAt(0);
  return code <= 0xff ? `%${code.toString(16)}` : encodeURIComponent(character.toWellFormed());
}
