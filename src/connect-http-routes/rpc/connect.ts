/**
 * Serves unary calls of the Connect protocol with the code that serves routes; other requests go to the fallback. For each call
 * connect-node creates streams, a real `Headers` and two `AbortController`, which cost more than the call itself.
 */
import { create } from "@bufbuild/protobuf";
import { ConnectError } from "@connectrpc/connect";
import { mergeNonProtocolHeaders } from "@connectrpc/connect/protocol";
import { codeToHttpStatus, errorToJsonBytes, parseTimeout } from "@connectrpc/connect/protocol-connect";
import type { Call } from "../call/call.ts";
import { internalError } from "../call/errors.ts";
import type { Exchange } from "../call/exchange.ts";
import type { HeaderMap } from "../call/header-map.ts";
import { callUnary } from "../call/invoke.ts";
import type { RecordedRpc } from "../call/recorder.ts";
import {
  type ConnectForm,
  readConnectForm,
  readMessage,
  requestCompression,
  requireVersion,
  responseCompression,
} from "./connect-request.ts";
import { openCall, type Procedure, passGate, type UnaryOptions } from "./procedures.ts";

/** The content to send, and its status. */
interface Outcome {
  readonly status: number;
  readonly content: Uint8Array;
}

/** Serves a call. Returns false, without touching the request, if it is not a call of the Connect protocol. */
export function serveConnect<Source>(
  options: UnaryOptions<Source>,
  procedure: Procedure,
  exchange: Exchange<Source>,
): boolean {
  const form = readConnectForm(exchange, procedure.method);
  if (form === undefined) return false;
  void serve(options, procedure, exchange, form);
  return true;
}

/** Serves a call. It never rejects. */
async function serve<Source>(
  options: UnaryOptions<Source>,
  procedure: Procedure,
  exchange: Exchange<Source>,
  form: ConnectForm,
): Promise<void> {
  const { rpc } = procedure;
  try {
    const timeout = parseTimeout(exchange.headers.get("connect-timeout-ms"), rpc.options.maxTimeoutMs);
    const call = openCall(options, procedure, exchange, "connect", timeout.timeoutMs);
    const { responseHeader: header } = call;
    header.set("content-type", form.binary ? "application/proto" : "application/json");
    const { status, content } = await outcomeOf(options, procedure, exchange, form, call, timeout.error);
    const sent = await compress(rpc, exchange, form, header, content);
    const trailers = call.responseTrailer.lines();
    for (let i = 0; i < trailers.length; i += 2) header.append(`trailer-${trailers[i]}`, trailers[i + 1] ?? "");
    header.set("content-length", String(sent.byteLength));
    options.onResponse?.(header, exchange.source);
    exchange.send(status, header.lines(), sent);
  } catch {
    // A hook or a compression that throws must not end the process.
    exchange.sendServerError();
  }
}

async function outcomeOf<Source>(
  options: UnaryOptions<Source>,
  { rpc, serialization }: Procedure,
  exchange: Exchange<Source>,
  form: ConnectForm,
  call: Call,
  timeoutError: ConnectError | undefined,
): Promise<Outcome> {
  try {
    await passGate(rpc, call);
    if (rpc.options.requireConnectProtocolHeader) requireVersion(exchange.headers, form);
    const compression = requestCompression(rpc.options.acceptCompression, exchange.headers, form);
    if (timeoutError !== undefined) throw timeoutError;
    const bytes = await readMessage(exchange, form, compression, rpc.options.readMaxBytes);
    const output = await callUnary(rpc, call, serialization.getI(form.binary).parse(bytes));
    const content = serialization.getO(form.binary).serialize(create(call.method.output, output));
    call.end();
    return { status: 200, content };
  } catch (reason) {
    call.end(reason);
    return fail(options, rpc, call, reason);
  }
}

function fail<Source>(
  { translateError }: UnaryOptions<Source>,
  { options: { jsonOptions } }: RecordedRpc,
  call: Call,
  reason: unknown,
): Outcome {
  const { responseHeader: header } = call;
  const error = reason instanceof ConnectError ? reason : internalError(reason);
  header.set("content-type", "application/json");
  // The metadata of an error that another server has sent is not passed on, as in connect-es.
  if (!error.isWireError) mergeNonProtocolHeaders(header, error.metadata);
  const translated = translateError?.(error, call);
  if (translated !== undefined) for (const [name, value] of translated.metadata) header.set(name, value);
  const sent = translated ?? error;
  // The options apply to the service's own messages. A translated error may have details of other types, so it gets the default ones.
  const content = errorToJsonBytes(sent, translated === undefined ? jsonOptions : undefined);
  return { status: codeToHttpStatus(sent.code), content };
}

async function compress(
  { options: { acceptCompression, compressMinBytes } }: RecordedRpc,
  { headers }: Exchange<unknown>,
  form: ConnectForm,
  header: HeaderMap,
  content: Uint8Array,
): Promise<Uint8Array> {
  if (content.byteLength < compressMinBytes) return content;
  const compression = responseCompression(acceptCompression, headers, form);
  if (compression === null) return content;
  header.set("content-encoding", compression.name);
  return compression.compress(content);
}
