import {
  type ClientHttp2Stream,
  constants,
  type OutgoingHttpHeaders,
  type SecureClientSessionOptions,
} from "node:http2";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { Code, ConnectError, type Transport } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { HeaderMap } from "connect-http-routes";
import { ClientSessions, type KeepAliveOptions } from "../platform/http2/client-sessions.ts";
import { envelope, type GrpcResult, repairStatusOf } from "./grpc-call.ts";
import { readResponse } from "./read-response.ts";
import { noteUnprocessed, sendAgain, sendingStreamsAgain } from "./send-again.ts";

type SessionManager = Pick<ClientSessions, "authority" | "request" | "notifyResponseByteRead">;

export interface GrpcUpstreamOptions extends KeepAliveOptions {
  /** The URL of the server, such as `http://127.0.0.1:50051`. */
  readonly baseUrl: string;
  /** Options of `http2.connect`: certificates and authorities. */
  readonly nodeOptions?: SecureClientSessionOptions;
  /** The connection to use. Default: a new one with the options above. */
  readonly sessionManager?: SessionManager;
  /** The largest message of a unary response, in bytes. Default: 4 MiB, as in gRPC. */
  readonly readMaxBytes?: number;
}

const DEFAULT_READ_MAX_BYTES = 4 * 1024 * 1024;

/**
 * Creates a transport for gRPC servers. Its unary calls cost a third of those of `createGrpcTransport`: it has no interceptors and no
 * compression, and copies no headers. Streaming calls go through `createGrpcTransport`.
 */
export function createGrpcUpstream(options: GrpcUpstreamOptions): Transport {
  const { baseUrl, nodeOptions, readMaxBytes = DEFAULT_READ_MAX_BYTES } = options;
  const sessionManager = options.sessionManager ?? new ClientSessions(baseUrl, options, nodeOptions);
  const streaming = createGrpcTransport({ baseUrl, sessionManager: preparing(sessionManager), readMaxBytes });
  const prefix = new URL(baseUrl).pathname.replace(/\/+$/, "");
  return {
    stream: sendingStreamsAgain(streaming),
    async unary(method, signal, timeoutMs, header, input) {
      if (signal?.aborted) throw ConnectError.from(signal.reason, Code.Canceled);
      const path = `${prefix}/${method.parent.typeName}/${method.name}`;
      const bytes = envelope(toBinary(method.input, create(method.input, input)));
      const send = async (leftMs: number | undefined): Promise<GrpcResult> => {
        const headers = headersFor(header as [string, string][] | undefined, leftMs);
        const guard = guardCall(signal, leftMs);
        try {
          const call = await guard.open(open(sessionManager, path, headers));
          const response = readResponse(call, readMaxBytes, () => sessionManager.notifyResponseByteRead(call));
          call.end(bytes);
          return await guard.wait(response);
        } catch (error) {
          throw guard.reason() ?? error;
        } finally {
          guard.end();
        }
      };
      return unaryResponse(method, await sendAgain(timeoutMs, send)) as never;
    },
  };
}

/** Wraps the connections for a transport of connect-node: a gRPC status is repaired, and what the server has not processed is noted. */
export function preparing(manager: SessionManager): SessionManager {
  return {
    authority: manager.authority,
    request: async (...given) => noteUnprocessed(repairStatusOf(await manager.request(...given))),
    notifyResponseByteRead: (stream) => manager.notifyResponseByteRead(stream),
  };
}

async function open(manager: SessionManager, path: string, headers: OutgoingHttpHeaders): Promise<ClientHttp2Stream> {
  try {
    return noteUnprocessed(await manager.request("POST", path, headers, {}));
  } catch (cause) {
    throw new ConnectError("no connection", Code.Unavailable, undefined, undefined, cause);
  }
}

function unaryResponse(method: Parameters<Transport["unary"]>[0], { header, trailer, message }: GrpcResult) {
  return {
    stream: false,
    service: method.parent,
    method,
    header: new HeaderMap(header),
    trailer: new HeaderMap(trailer),
    message: fromBinary(method.output, message),
  };
}

function headersFor(metadata: readonly [string, string][] | undefined, timeoutMs: number | undefined) {
  // The object has no prototype, because clients choose the names of headers, such as `constructor`.
  const headers: Record<string, string | string[]> = Object.create(null);
  Object.assign(headers, { "content-type": "application/grpc+proto", te: "trailers" });
  for (const [name, value] of metadata ?? []) {
    const other = headers[name];
    headers[name] = other === undefined ? value : Array.isArray(other) ? [...other, value] : [other, value];
  }
  // A timeout has at most eight digits (PROTOCOL-HTTP2.md, TimeoutValue).
  if (timeoutMs !== undefined) {
    headers["grpc-timeout"] =
      timeoutMs < 1e8 ? `${Math.ceil(timeoutMs)}m` : `${Math.min(Math.ceil(timeoutMs / 1000), 99_999_999)}S`;
  }
  return headers;
}

/** Ends a call at its deadline and when it is cancelled, also while it waits for a connection. */
function guardCall(signal: AbortSignal | undefined, timeoutMs: number | undefined) {
  let reason: ConnectError | undefined;
  let call: ClientHttp2Stream | undefined;
  let stopWaiting: (why: ConnectError) => void = () => {};
  const stop = (why: ConnectError) => {
    reason ??= why;
    call?.close(constants.NGHTTP2_CANCEL);
    stopWaiting(reason);
  };
  const wait = <T>(promise: Promise<T>): Promise<T> =>
    new Promise((resolve, reject) => {
      stopWaiting = reject;
      promise.then(resolve, reject);
    });
  const onAbort = () => stop(ConnectError.from(signal?.reason, Code.Canceled));
  const timer =
    timeoutMs === undefined
      ? undefined
      : setTimeout(
          () => stop(new ConnectError("the operation timed out", Code.DeadlineExceeded)),
          Math.min(timeoutMs, 2 ** 31 - 1),
        );
  if (signal?.aborted) onAbort();
  signal?.addEventListener("abort", onAbort);
  return {
    reason: () => reason,
    /** Resolves with the call when it is open. */
    open: (opening: Promise<ClientHttp2Stream>) =>
      wait(
        opening.then((opened) => {
          call = opened;
          if (reason !== undefined) opened.close(constants.NGHTTP2_CANCEL);
          return opened;
        }),
      ),
    /** Waits until the call is stopped at most: Node closes a call that waits for a free stream only when there is one. */
    wait,
    end() {
      clearTimeout(timer);
      signal?.removeEventListener("abort", onAbort);
    },
  };
}
