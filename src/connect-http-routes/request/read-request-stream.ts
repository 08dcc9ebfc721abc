import type { Message } from "@bufbuild/protobuf";
import type { CallInFlight } from "../bounds.ts";
import { type BodyChunks, chunksOf } from "../call/body-chunks.ts";
import type { Exchange } from "../call/exchange.ts";
import { type ContentCodec, codecOf } from "../codec/content-codec.ts";
import { LineSplitter, type StreamSplitter, ValueSplitter } from "../codec/json-splitter.ts";
import { SizeDelimitedSplitter } from "../codec/size-delimited.ts";
import { decompressChunks } from "../response/compression.ts";
import { FailureError, failures } from "../response/failure.ts";
import { isJson, isJsonLines } from "../response/negotiation.ts";
import type { Serving } from "./serving.ts";

export interface RequestStream {
  /** The messages. Each is read from the body when it is asked for. */
  readonly messages: AsyncIterable<Message>;
  /** Returns why the body could not be read. An error that the implementation throws afterwards may be a consequence. */
  failure(): { readonly reason: unknown } | undefined;
  /** Stops reading; never throws. */
  close(): void;
}

/**
 * Reads a request stream: newline-delimited JSON, the elements of a JSON array, size-delimited messages of a codec, or the pieces of a
 * google.api.HttpBody. Path and query belong to each message.
 * @throws FailureError for a content type that is none of these
 */
export function openRequestStream<Source>(serving: Serving<Source>): RequestStream {
  const { exchange, call, bindings, query, codecs, inFlight } = serving;
  const { rpc, request } = serving.endpoint;
  const contentType = exchange.headers.get("content-type") || null;
  const raw = request.body === "raw";
  const limit = rpc.options.readMaxBytes;
  const codec = raw ? undefined : codecOf(codecs, contentType)?.codec;
  if (codec !== undefined && (codec.kind === "value" || !request.accepts(codec))) throw unsupported(contentType);
  const splitter = raw ? undefined : createSplitter(contentType, codec, limit);
  const body = openBody(exchange, raw);
  const decode = (bytes: Uint8Array) => request.decode(bindings, query, bytes, contentType, codec);
  const texts = splitter === undefined ? pieces(body, limit) : split(body, splitter, inFlight);
  let failure: { readonly reason: unknown } | undefined;
  async function* messages(): AsyncGenerator<Message> {
    try {
      for await (const text of texts) yield decode(text);
    } catch (reason) {
      failure ??= { reason };
      throw reason;
    }
  }
  const cancel = () => body.cancel(call.signal.reason);
  inFlight?.onRefused((refusal) => body.cancel(refusal));
  call.signal.addEventListener("abort", cancel);
  return {
    messages: messages(),
    failure: () => (call.signal.aborted ? undefined : failure),
    close() {
      call.signal.removeEventListener("abort", cancel);
      body.cancel(new Error("the call has ended"));
    },
  };
}

function createSplitter(contentType: string | null, codec: ContentCodec | undefined, limit: number): StreamSplitter {
  if (codec !== undefined) return new SizeDelimitedSplitter(limit);
  if (contentType === null || isJson(contentType)) return new ValueSplitter(limit);
  if (isJsonLines(contentType)) return new LineSplitter(limit);
  throw unsupported(contentType);
}

function unsupported(contentType: string | null): FailureError {
  const reason = `the content type ${contentType} is neither JSON nor newline-delimited JSON in UTF-8`;
  return new FailureError(failures.unsupportedMediaType(reason));
}

function openBody<Source>(exchange: Exchange<Source>, raw: boolean): BodyChunks {
  if (!exchange.hasBody) return chunksOf(new Uint8Array());
  const encoding = exchange.isReadBefore ? null : exchange.headers.get("content-encoding");
  const chunks = exchange.chunks(raw);
  return encoding === null ? chunks : decompressChunks(exchange.gzip, chunks, encoding);
}

async function* split(body: BodyChunks, splitter: StreamSplitter, inFlight?: CallInFlight): AsyncGenerator<Uint8Array> {
  for (let chunk = await body.next(); chunk !== undefined; chunk = await body.next()) {
    const texts = splitter.push(chunk);
    // Only the time within a message is limited, neither the time between messages nor that of processing them.
    if (texts.length > 0 || splitter.pendingBytes === 0) inFlight?.hold(0);
    yield* texts;
    if (splitter.pendingBytes > 0) inFlight?.arriving(splitter.pendingBytes);
  }
  yield* splitter.end();
}

/** Yields the pieces of an upload as they arrive. An empty upload yields one empty piece, because path and query come with a piece. */
async function* pieces(body: BodyChunks, limit: number): AsyncGenerator<Uint8Array> {
  let some = false;
  for (let chunk = await body.next(); chunk !== undefined; chunk = await body.next()) {
    some = true;
    for (let at = 0; at < chunk.byteLength; at += limit) yield chunk.subarray(at, at + limit);
  }
  if (!some) yield new Uint8Array();
}
