/**
 * Serves unary calls of gRPC by the way of the routes, for the same reason as those of the Connect protocol. Compressed requests and
 * HTTP/1.1 are left to connect-node.
 */
import { ConnectError } from "@connectrpc/connect";
import { compressionNegotiate } from "@connectrpc/connect/protocol";
import {
  contentTypeJson,
  contentTypeProto,
  grpcStatusOk,
  parseContentType,
  parseTimeout,
  setTrailerStatus,
} from "@connectrpc/connect/protocol-grpc";
import { Call } from "../call/call.ts";
import type { TrailerExchange } from "../call/exchange.ts";
import { callUnary } from "../call/invoke.ts";
import { internalError, type Procedure, passGate, type UnaryOptions } from "../call/procedures.ts";
import { encodeMessage, readMessage } from "./envelope.ts";

const ACCEPT_ENCODING = "grpc-accept-encoding";

/** Serves unary calls of gRPC. */
interface GrpcHandler<Source> {
  /** Serves a call. Returns false, and leaves the request alone, if it is no call by gRPC, or a compressed one. */
  serve(procedure: Procedure, exchange: TrailerExchange<Source>): boolean;
}

export function createGrpcUnary<Source>(options: UnaryOptions<Source>): GrpcHandler<Source> {
  return {
    serve(procedure, exchange) {
      const { headers, method } = exchange;
      const type = method === "POST" ? parseContentType(headers.get("content-type")) : undefined;
      if (type === undefined || (headers.get("grpc-encoding") ?? "identity") !== "identity") return false;
      void serve(options, procedure, exchange, type.binary);
      return true;
    },
  };
}

/** Never rejects. */
async function serve<Source>(
  options: UnaryOptions<Source>,
  procedure: Procedure,
  exchange: TrailerExchange<Source>,
  binary: boolean,
): Promise<void> {
  const { method, rpc } = procedure;
  try {
    const timeout = parseTimeout(exchange.headers.get("grpc-timeout"), rpc.options.maxTimeoutMs);
    const call = new Call(method, exchange, {
      protocolName: "grpc",
      timeoutMs: timeout.timeoutMs,
      shutdownSignal: rpc.options.shutdownSignal,
      contextValues: options.contextValues?.(exchange.source),
    });
    const { responseHeader: header, responseTrailer: trailer } = call;
    header.set("content-type", binary ? contentTypeProto : contentTypeJson);
    trailer.set("grpc-status", grpcStatusOk);
    const content = await respond(procedure, exchange, binary, call, timeout.error).catch((reason: unknown) => {
      call.end(reason);
      fail(options, call, reason);
      return undefined;
    });
    options.onResponse?.(header, exchange.source);
    exchange.sendWithTrailers(header.lines(), content, trailer.lines());
  } catch {
    // A hook that throws must not end the process.
    exchange.sendServerError();
  }
}

/** Resolves with the content of the response. */
async function respond(
  { rpc, serialization }: Procedure,
  exchange: TrailerExchange<unknown>,
  binary: boolean,
  call: Call,
  timeoutError: ConnectError | undefined,
): Promise<Uint8Array> {
  const { acceptCompression, compressMinBytes, readMaxBytes } = rpc.options;
  const accepted = exchange.headers.get(ACCEPT_ENCODING);
  const { response: compression } = compressionNegotiate(acceptCompression, null, accepted, ACCEPT_ENCODING);
  if (compression !== null) call.responseHeader.set("grpc-encoding", compression.name);
  await passGate(rpc, call);
  if (timeoutError !== undefined) throw timeoutError;
  const input = serialization.getI(binary).parse(await readMessage(exchange, readMaxBytes));
  const output = serialization.getO(binary).serialize(await callUnary(rpc, call, input));
  const content = await encodeMessage(output, output.byteLength < compressMinBytes ? null : compression);
  call.end();
  return content;
}

/** The status of gRPC is in the trailers, with the metadata of the error. */
function fail<Source>({ translateError }: UnaryOptions<Source>, call: Call, reason: unknown): void {
  const error = reason instanceof ConnectError ? reason : internalError(reason);
  setTrailerStatus(call.responseTrailer, wellFormed(error));
  const translated = translateError?.(error, call);
  if (translated !== undefined) setTrailerStatus(call.responseTrailer, wellFormed(translated));
}

/** A message is percent-encoded as UTF-8. What a parser quotes of a request may hold half of a character, which has none. */
function wellFormed(error: ConnectError): ConnectError {
  const { rawMessage, code, metadata } = error;
  return rawMessage.isWellFormed() ? error : new ConnectError(rawMessage.toWellFormed(), code, metadata);
}
