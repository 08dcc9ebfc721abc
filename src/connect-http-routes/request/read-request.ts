import type { Message } from "@bufbuild/protobuf";
import type { CallInFlight } from "../bounds.ts";
import type { Exchange } from "../call/exchange.ts";
import { NO_BYTES } from "../codec/bytes.ts";
import { codecOf } from "../codec/content-codec.ts";
import { decompress } from "../response/compression.ts";
import { type Failure, FailureError, failures } from "../response/failure.ts";
import { isJson } from "../response/negotiation.ts";
import type { Serving } from "./serving.ts";

/**
 * Reads and decodes the request of an RPC that takes one message. Returns a promise only if the body has not arrived yet.
 * @throws FailureError for a content type that the route does not take, BadInput
 */
export function readRequest<Source>(serving: Serving<Source>): Message | Promise<Message> {
  const { exchange, bindings, query, codecs, inFlight } = serving;
  const { rpc, request } = serving.endpoint;
  // An empty header counts as absent.
  const contentType = exchange.headers.get("content-type") || null;
  const isPlain = contentType === null || contentType === "application/json";
  const form = isPlain ? undefined : request.forms.find((each) => each.contentType.test(contentType));
  const codec = codecs && codecOf(codecs, contentType)?.codec;
  const known = codec === undefined ? isPlain || form !== undefined || isJson(contentType) : request.accepts(codec);
  if (request.body === "json" && !known) throw new FailureError(unsupported(contentType, codec !== undefined));
  const raw = form?.raw ?? request.body === "raw";
  const { readMaxBytes } = rpc.options;
  const body =
    request.body === "none"
      ? NO_BYTES
      : inFlight === undefined
        ? exchange.read(readMaxBytes, raw)
        : readMetered(exchange, readMaxBytes, raw, inFlight);
  const { decode } = form ?? request;
  return body instanceof Promise
    ? body.then((bytes) => decode(bindings, query, bytes, contentType, codec))
    : decode(bindings, query, body, contentType, codec);
}

function unsupported(contentType: string | null, known: boolean): Failure {
  const reason = known ? "cannot be the body of this route, which is not a message" : "is not JSON in UTF-8";
  return failures.unsupportedMediaType(`the content type ${contentType} ${reason}`);
}

function readMetered<Source>(
  exchange: Exchange<Source>,
  limit: number,
  raw: boolean,
  inFlight: CallInFlight,
): Uint8Array | Promise<Uint8Array> {
  const encoding = exchange.isReadBefore || !exchange.hasBody ? null : exchange.headers.get("content-encoding");
  const read = exchange.read(limit, raw, inFlight);
  if (encoding === null && !(read instanceof Promise)) return hold(read, inFlight);
  const arrived = Promise.resolve(read);
  const expanded =
    encoding === null ? arrived : arrived.then((bytes) => decompress(exchange.gzip, bytes, encoding, limit));
  return expanded.then((body) => hold(body, inFlight));
}

function hold(body: Uint8Array, inFlight: CallInFlight): Uint8Array {
  inFlight.hold(body.byteLength);
  return body;
}
