import type { Message } from "@bufbuild/protobuf";
import type { CallInFlight } from "./bounds.ts";
import type { Endpoint } from "./call/endpoints.ts";
import type { Exchange } from "./call/exchange.ts";
import { type Codecs, codecOf } from "./codec/content-codec.ts";
import { decompress } from "./response/compression.ts";
import { type Failure, FailureError, failures } from "./response/failure.ts";
import { isJson } from "./response/negotiation.ts";
import type { Binding } from "./routes/matcher.ts";

const FORM = /^application\/x-www-form-urlencoded\s*(?:;\s*charset="?utf-?8"?\s*)?$/i;

const MULTIPART = /^multipart\/form-data\s*;/i;

const NO_BYTES = new Uint8Array();

/**
 * Reads and decodes the request of an RPC that takes one message. Returns a promise only if the body has not arrived yet.
 * @param inFlight undefined if the body needs no limit beyond its size
 * @throws FailureError for a content type that the route does not take, BadInput
 */
export function readRequest<Source>(
  exchange: Exchange<Source>,
  { rpc, request }: Endpoint,
  bindings: readonly Binding[],
  query: string,
  codecs: Codecs | undefined,
  inFlight: CallInFlight | undefined,
): Message | Promise<Message> {
  // An empty header counts as absent.
  const contentType = exchange.headers.get("content-type") || null;
  const isPlain = contentType === null || contentType === "application/json";
  const isForm = !isPlain && request.decodeForm !== undefined && FORM.test(contentType);
  const { decodeMultipart } = request;
  const isMultipart = !isPlain && decodeMultipart !== undefined && MULTIPART.test(contentType);
  const codec = codecs && codecOf(codecs, contentType)?.codec;
  const known = codec === undefined ? isPlain || isForm || isMultipart || isJson(contentType) : request.accepts(codec);
  if (request.body === "json" && !known) throw new FailureError(unsupported(contentType, codec !== undefined));
  const readable = request.body !== "none" && exchange.hasBody;
  const body = readable
    ? readBody(exchange, rpc.options.readMaxBytes, request.body === "raw" || isMultipart, inFlight)
    : NO_BYTES;
  const decode = (bytes: Uint8Array) => {
    if (isMultipart) return decodeMultipart(bindings, bytes, contentType);
    return isForm && request.decodeForm !== undefined
      ? request.decodeForm(bindings, bytes)
      : request.decode(bindings, query, bytes, contentType, codec);
  };
  return body instanceof Promise ? body.then(decode) : decode(body);
}

function unsupported(contentType: string | null, known: boolean): Failure {
  const reason = known ? "cannot be the body of this route, which is not a message" : "is not JSON in UTF-8";
  return failures.unsupportedMediaType(`the content type ${contentType} ${reason}`);
}

function readBody<Source>(
  exchange: Exchange<Source>,
  limit: number,
  raw: boolean,
  inFlight: CallInFlight | undefined,
): Uint8Array | Promise<Uint8Array> {
  const readBefore = exchange.bodyReadBefore(raw);
  if (readBefore !== undefined) {
    if (readBefore.byteLength > limit) throw new FailureError(failures.tooLarge(limit));
    return readBefore;
  }
  return inFlight === undefined ? exchange.read(limit) : readMetered(exchange, limit, inFlight);
}

async function readMetered<Source>(
  exchange: Exchange<Source>,
  limit: number,
  inFlight: CallInFlight,
): Promise<Uint8Array> {
  const encoding = exchange.headers.get("content-encoding");
  const read = await exchange.read(limit, inFlight);
  const body = encoding === null ? read : await decompress(exchange.gzip, read, encoding, limit);
  inFlight.hold(body.byteLength);
  return body;
}
