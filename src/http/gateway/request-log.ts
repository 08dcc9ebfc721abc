import type { DescMethod } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import type { NodeHandler, NodeRequest } from "../node/node-handler.ts";
import type { ResponseInfo } from "../response/responses.ts";

/** Writes one JSON object. */
export type WriteLog = (line: Readonly<Record<string, unknown>>) => void;

export interface RequestLog {
  /** Logs every request that the handler serves when its response is complete or has been cut. */
  wrap(handler: NodeHandler): NodeHandler;
  /** For the hook `onResponse`: keeps what only the handler knows. */
  note(response: ResponseInfo<NodeRequest>): void;
}

interface Note {
  readonly rpc: DescMethod | undefined;
  readonly code: Code | undefined;
}

/** @param errorsOnly whether only requests that end with a status from 500 or without a response are logged */
export function createRequestLog(write: WriteLog, errorsOnly: boolean): RequestLog {
  const notes = new WeakMap<NodeRequest, Note>();
  return {
    note({ request, rpc, failure }) {
      notes.set(request, { rpc, code: failure?.error.code });
    },
    wrap: (handler) => (request, response) => {
      const start = performance.now();
      const { method, url = "" } = request;
      // The query may hold secrets.
      const [path] = url.split("?", 1);
      const peer = request.socket.remoteAddress;
      response.once("close", () => {
        const status = response.headersSent ? response.statusCode : 0;
        const complete = response.writableFinished;
        if (errorsOnly && complete && status < 500) return;
        const { rpc, code } = notes.get(request) ?? {};
        write({
          event: "request",
          method,
          path,
          status,
          durationMs: Math.round((performance.now() - start) * 10) / 10,
          peer,
          ...(rpc && { rpc: `${rpc.parent.typeName}/${rpc.name}` }),
          ...(code !== undefined && { code: Code[code] }),
          ...(!complete && { cut: true }),
        });
      });
      handler(request, response);
    },
  };
}
