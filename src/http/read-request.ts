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

const NO_BYTES = new Uint8Array();

/**
 * Reads and decodes the request of an RPC that takes one message.
 * @throws FailureError for a content type that the route does not take, BadInput
 */
export async function readRequest<Source>(
  exchange: Exchange<Source>,
  { rpc, request }: Endpoint,
  bindings: readonly Binding[],
  query: string,
  codecs: Codecs | undefined,
  inFlight: CallInFlight,
): Promise<Message> {
  // An empty header counts as absent.
  const contentType = exchange.headers.get("content-type") || null;
  const isForm = request.decodeForm !== undefined && contentType !== null && FORM.test(contentType);
  const codec = codecOf(codecs, contentType)?.codec;
  const known = codec === undefined ? isForm || contentType === null || isJson(contentType) : request.accepts(codec);
  if (request.body === "json" && !known) throw new FailureError(unsupported(contentType, codec !== undefined));
  const readable = request.body !== "none" && exchange.hasBody;
  const body = readable
    ? await readBody(exchange, rpc.options.readMaxBytes, request.body === "raw", inFlight)
    : NO_BYTES;
  if (isForm && request.decodeForm !== undefined) return request.decodeForm(bindings, body);
  return request.decode(bindings, query, body, contentType, codec);
}

function unsupported(contentType: string | null, known: boolean): Failure {
  const reason = known ? "cannot be the body of this route, which is not a message" : "is not JSON in UTF-8";
  return failures.unsupportedMediaType(`the content type ${contentType} ${reason}`);
}

async function readBody<Source>(
  exchange: Exchange<Source>,
  limit: number,
  raw: boolean,
  inFlight: CallInFlight,
): Promise<Uint8Array> {
  const readBefore = exchange.bodyReadBefore(raw);
  if (readBefore !== undefined) {
    if (readBefore.byteLength > limit) throw new FailureError(failures.tooLarge(limit));
    return readBefore;
  }
  const encoding = exchange.headers.get("content-encoding");
  if (encoding === null && inFlight.ignores(exchange.headers.get("content-length"))) return exchange.read(limit);
  const read = await exchange.read(limit, inFlight);
  const body = encoding === null ? read : await decompress(exchange.gzip, read, encoding, limit);
  inFlight.hold(body.byteLength);
  return body;
}
