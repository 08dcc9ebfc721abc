/**
 * Serves unary calls of gRPC and gRPC-Web with the code that serves routes: connect-node's objects for each call cost more than the call.
 * Compressed requests, gRPC over HTTP/1.1 and gRPC-Web in base64 are left to connect-node.
 */
import { create } from "@bufbuild/protobuf";
import { ConnectError } from "@connectrpc/connect";
import { type Compression, compressionNegotiate } from "@connectrpc/connect/protocol";
import { grpcStatusOk, parseTimeout, setTrailerStatus } from "@connectrpc/connect/protocol-grpc";
import type { Call } from "../call/call.ts";
import { internalError } from "../call/errors.ts";
import type { TrailerExchange } from "../call/exchange.ts";
import { callUnary } from "../call/invoke.ts";
import { concatBytes } from "../codec/bytes.ts";
import { encodeMessage, encodeTrailers, readMessage, TRAILERS_FLAG } from "./grpc-envelope.ts";
import { type GrpcForm, readGrpcForm } from "./grpc-form.ts";
import { openCall, type Procedure, passGate, type UnaryOptions } from "./procedures.ts";

const ACCEPT_ENCODING = "grpc-accept-encoding";

/** Serves a call. Returns false, without touching the request, if it is not a unary call of gRPC or gRPC-Web, or if it is compressed. */
export function serveGrpc<Source>(
  options: UnaryOptions<Source>,
  procedure: Procedure,
  exchange: TrailerExchange<Source>,
): boolean {
  const form = readGrpcForm(exchange);
  if (form === undefined || (exchange.headers.get("grpc-encoding") ?? "identity") !== "identity") return false;
  void serve(options, procedure, exchange, form);
  return true;
}

/** Serves a call. It never rejects. */
async function serve<Source>(
  options: UnaryOptions<Source>,
  procedure: Procedure,
  exchange: TrailerExchange<Source>,
  form: GrpcForm,
): Promise<void> {
  try {
    const timeout = parseTimeout(exchange.headers.get("grpc-timeout"), procedure.rpc.options.maxTimeoutMs);
    const call = openCall(options, procedure, exchange, form.protocolName, timeout.timeoutMs);
    const { responseHeader: header, responseTrailer: trailer } = call;
    header.set("content-type", form.contentType);
    trailer.set("grpc-status", grpcStatusOk);
    const compress = compressionOf(procedure, exchange, call);
    const content = await respond(procedure, exchange, { form, call, compress }, timeout.error).catch(
      (reason: unknown) => {
        call.end(reason);
        fail(options, call, reason);
        return undefined;
      },
    );
    if (form.isWeb) {
      const trailers = encodeTrailers(trailer.lines());
      const body = [...(content ? [content] : []), await encodeMessage(trailers, compress(trailers), TRAILERS_FLAG)];
      options.onResponse?.(header, exchange.source);
      exchange.send(200, header.lines(), concatBytes(body));
    } else {
      options.onResponse?.(header, exchange.source);
      exchange.sendWithTrailers(header.lines(), content, trailer.lines());
    }
  } catch {
    // A hook that throws must not end the process.
    exchange.sendServerError();
  }
}

/** Returns the compression of the messages in a response. */
function compressionOf(
  { rpc: { options } }: Procedure,
  { headers }: TrailerExchange<unknown>,
  { responseHeader }: Call,
): (message: Uint8Array) => Compression | null {
  const accepted = headers.get(ACCEPT_ENCODING);
  const { response } = compressionNegotiate(options.acceptCompression, null, accepted, ACCEPT_ENCODING);
  if (response === null) return () => null;
  responseHeader.set("grpc-encoding", response.name);
  return ({ byteLength }) => (byteLength < options.compressMinBytes ? null : response);
}

/** Calls the implementation. Resolves with the message of the response. */
async function respond(
  { rpc, serialization }: Procedure,
  exchange: TrailerExchange<unknown>,
  { form, call, compress }: Responding,
  timeoutError: ConnectError | undefined,
): Promise<Uint8Array> {
  await passGate(rpc, call);
  if (timeoutError !== undefined) throw timeoutError;
  const message = await readMessage(exchange, rpc.options.readMaxBytes, form.isWeb ? TRAILERS_FLAG : 0);
  const input = serialization.getI(form.binary).parse(message);
  const result = create(call.method.output, await callUnary(rpc, call, input));
  const output = serialization.getO(form.binary).serialize(result);
  const content = await encodeMessage(output, compress(output));
  call.end();
  return content;
}

type Responding = {
  readonly form: GrpcForm;
  readonly call: Call;
  readonly compress: ReturnType<typeof compressionOf>;
};

/** Sends an error. The status of gRPC is in the trailers, with the metadata of the error. */
function fail<Source>({ translateError }: UnaryOptions<Source>, call: Call, reason: unknown): void {
  const error = reason instanceof ConnectError ? reason : internalError(reason);
  setTrailerStatus(call.responseTrailer, wellFormed(error));
  const translated = translateError?.(error, call);
  if (translated !== undefined) setTrailerStatus(call.responseTrailer, wellFormed(translated));
}

/** Returns the error with a message that can be percent-encoded: one that quotes a request may contain half of a surrogate pair. */
function wellFormed(error: ConnectError): ConnectError {
  const { rawMessage, code, metadata } = error;
  return rawMessage.isWellFormed() ? error : new ConnectError(rawMessage.toWellFormed(), code, metadata);
}
