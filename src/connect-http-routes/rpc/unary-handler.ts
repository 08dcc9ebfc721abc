import { NodeExchange, type NodeRequest } from "../node/node-exchange.ts";
import type { NodeHandler } from "../node/node-handler.ts";
import { serveConnect } from "./connect.ts";
import { serveGrpc } from "./grpc.ts";
import { createProcedures, type UnaryOptions } from "./procedures.ts";

export type UnaryHandlerOptions = UnaryOptions<NodeRequest> & {
  /** Handles all other requests: `connectNodeAdapter` of connect-node, with the same routes and options. */
  readonly fallback: NodeHandler;
};

/**
 * Serves unary calls of the Connect protocol (POST and GET), of gRPC over HTTP/2 and of gRPC-Web, on node:http, node:https and node:http2
 * (compatibility API).
 */
export function createUnaryHandler(options: UnaryHandlerOptions): NodeHandler {
  const procedures = createProcedures(options);
  return (request, response, next) => {
    const { url = "", method = "" } = request;
    const mark = url.indexOf("?");
    const procedure = procedures.get(mark === -1 ? url : url.slice(0, mark));
    if (procedure !== undefined) {
      // The last argument keeps the connection open even if the response is sent before the whole body has arrived, as in connect-node.
      const exchange = new NodeExchange(request, response, url, method, true);
      if (serveConnect(options, procedure, exchange) || serveGrpc(options, procedure, exchange)) return;
    }
    options.fallback(request, response, next);
  };
}
