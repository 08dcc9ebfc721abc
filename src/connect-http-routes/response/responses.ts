import type { Message } from "@bufbuild/protobuf";
import { ConnectError } from "@connectrpc/connect";
import { mergeNonProtocolHeaders } from "@connectrpc/connect/protocol";
import type { Call } from "../call/call.ts";
import { successStatus } from "../call/context-keys.ts";
import type { Endpoint } from "../call/endpoints.ts";
import type { Exchange } from "../call/exchange.ts";
import { HeaderMap } from "../call/header-map.ts";
import { prefixMetadata } from "../call/metadata-prefix.ts";
import { byteLength, utf8Length } from "../codec/bytes.ts";
import { type ChosenCodec, type Codecs, codecOf } from "../codec/content-codec.ts";
import type { Payload } from "../codec/response-codec.ts";
import {
  type Failure,
  type FailureEncoder,
  type FailureResponse,
  failureFrom,
  failurePayload,
  isSameForAll,
  jsonOf,
  type OnInternalError,
  type ResponseInfo,
  reportInternalError,
  tooLong,
} from "./failure.ts";
import { acceptsGzip, codecFor } from "./negotiation.ts";
import { statusEncoder } from "./status-encoder.ts";
import { NDJSON, RAW_BYTES, type StreamFormat, streamFormatFor, withResults } from "./stream-format.ts";

/** Options for encoding responses. */
export interface ResponseOptions<Source> {
  /** Encodes failures. Default: google.rpc.Status as JSON. */
  readonly failureEncoder?: FailureEncoder;
  /** Receives the causes of internal errors. Default: `console.error`. */
  readonly onInternalError?: OnInternalError;
  /** Called immediately before the headers of any response are sent; may change them. */
  readonly onResponse?: (headers: Headers, response: ResponseInfo<Source>) => void;
  /** Whether responses of at least `compressMinBytes` are compressed for clients that accept gzip. Default: true. */
  readonly compress?: boolean;
  /** Whether streams are compressed for clients that accept gzip; each message is flushed. Default: false. */
  readonly compressStreams?: boolean;
  /** How often a comment is written to an idle stream of server-sent events, in milliseconds. Default: never. */
  readonly heartbeatIntervalMs?: number;
  /** Whether idle streams of NDJSON get an empty line at the same interval. Clients that parse every line fail at it. Default: false. */
  readonly ndjsonHeartbeats?: boolean;
  /**
   * How long the head of a streamed response waits for the first message, in milliseconds. A failure within that time becomes an ordinary
   * response. Default: one turn of the event loop, or 500 ms if calls are forwarded to a remote server (`transport`).
   */
  readonly streamHeadWaitMs?: number;
  /** Whether response trailers are sent as headers with the prefix `trailer-`. Default: false. */
  readonly trailersAsHeaders?: boolean;
}

/** Encodes results and failures and sends them. */
export class Responses<Source> {
  readonly #options: ResponseOptions<Source>;
  readonly #codecs: Codecs | undefined;
  /** The headers and contents of constant responses: a flood of refused requests must cost little. */
  readonly #prepared = new WeakMap<
    FailureResponse,
    { readonly lines: readonly string[]; readonly content: Payload["content"] }
  >();

  constructor(options: ResponseOptions<Source>, codecs: Codecs | undefined) {
    this.#options = options;
    this.#codecs = codecs;
  }

  async succeed(exchange: Exchange<Source>, endpoint: Endpoint, call: Call, output: Message): Promise<void> {
    const { responseHeader: header, responseTrailer: trailer } = call;
    const codec = this.#codecs === undefined ? undefined : this.chooseCodec(exchange, endpoint, header);
    const payload = endpoint.response.encode(output, codec);
    const { compressMinBytes, writeMaxBytes } = endpoint.rpc.options;
    if (endpoint.grpcMetadata) prefixMetadata(header);
    const prefix = endpoint.grpcMetadata ? "grpc-trailer-" : "trailer-";
    if (this.#options.trailersAsHeaders) for (const [name, value] of trailer) header.append(prefix + name, value);
    let { content } = payload;
    let coding: "gzip" | undefined;
    let length = typeof content === "string" ? utf8Length(content) : content.byteLength;
    if (length > writeMaxBytes) throw tooLong(length, writeMaxBytes);
    if (this.#options.compress !== false && length >= compressMinBytes) {
      header.append("vary", "Accept-Encoding");
      if (acceptsGzip(exchange.headers.get("accept-encoding")) && !header.has("content-encoding")) coding = "gzip";
    }
    if (endpoint.entityTags !== undefined && statusOf(call) === 200) {
      const response = { headers: header, message: output, content, mediaType: codec?.mediaType, coding };
      const isUnmodified = await endpoint.entityTags.isUnmodified(exchange, response);
      if (isUnmodified) return this.#send(exchange, endpoint, 304, header, undefined, 0, undefined);
    }
    if (coding !== undefined) {
      content = await exchange.gzip.compress(content);
      length = content.byteLength;
      header.set("content-encoding", coding);
    }
    if (header.get("content-type") === null) header.set("content-type", payload.contentType);
    this.#send(exchange, endpoint, statusOf(call), header, content, length, undefined);
  }

  /** Sends a failure with the headers of the handler and the metadata of the error: cookies, `WWW-Authenticate`, … Never throws. */
  fail(exchange: Exchange<Source>, endpoint: Endpoint | undefined, call: Call | undefined, reason: unknown): void {
    try {
      const failure = failureFrom(reason);
      const header = call?.responseHeader ?? new HeaderMap();
      const response = this.#encode(failure, exchange, endpoint, false);
      const isConstant = isSameForAll(failure, response) && header.isEmpty && this.#codecs === undefined;
      const known = isConstant ? this.#prepared.get(response) : undefined;
      const content = known?.content ?? this.#describe(exchange, endpoint, failure, response, header);
      if (known !== undefined) header.fill(known.lines);
      else if (isConstant) this.#prepared.set(response, { lines: [...header.lines()], content });
      const length = byteLength(content);
      this.#send(exchange, endpoint, response.status ?? failure.status, header, content, length, failure);
    } catch {
      // An encoder or a hook that throws must not end the process.
      exchange.sendServerError();
    }
  }

  /** Sets the headers of a failure. @returns the content */
  #describe(
    exchange: Exchange<Source>,
    endpoint: Endpoint | undefined,
    failure: Failure,
    response: FailureResponse,
    header: HeaderMap,
  ): Payload["content"] {
    const { reason: error } = failure;
    if (response.hasMetadata !== true && error instanceof ConnectError && !error.isWireError)
      mergeNonProtocolHeaders(header, error.metadata);
    if (endpoint?.grpcMetadata) prefixMetadata(header);
    if (failure.kind === "method_not_allowed") header.set("allow", failure.allow.join(", "));
    if (failure.kind === "unsupported_media_type" && failure.acceptEncoding !== undefined) {
      header.set("accept-encoding", failure.acceptEncoding); // RFC 9110 section 15.5.16.
    }
    if (failure.kind === "overloaded") header.set("retry-after", "1");
    for (const name in response.headers) header.set(name, response.headers[name] ?? "");
    header.delete("content-encoding");
    const { contentType, content } = failurePayload(response, this.#chosenBy(exchange, header));
    header.set("content-type", contentType);
    // RFC 9110 section 11.6.1: a 401 needs a challenge. A challenge that the error or the encoder has set is kept.
    const isUnauthorized = (response.status ?? failure.status) === 401;
    if (isUnauthorized && !header.has("www-authenticate")) header.set("www-authenticate", "Bearer");
    return content;
  }

  /** Returns the JSON of a failure that occurs after the response has started. */
  failureInBand(exchange: Exchange<Source>, endpoint: Endpoint, reason: unknown): string {
    return jsonOf(this.#encode(failureFrom(reason), exchange, endpoint, true));
  }

  /** Returns the codec of a response's content; undefined for JSON. */
  chooseCodec(exchange: Exchange<Source>, { raw, response }: Endpoint, header: HeaderMap): ChosenCodec | undefined {
    const chosen = raw ? undefined : this.#chosenBy(exchange, header);
    return chosen !== undefined && response.accepts(chosen.codec) ? chosen : undefined;
  }

  streamFormat({ headers }: Exchange<Source>, { raw, response, streamResults }: Endpoint): StreamFormat {
    if (raw) return RAW_BYTES;
    const codecs = this.#codecs;
    const accept = headers.get("accept");
    const format = streamFormatFor(accept, codecs, codecOf(codecs, headers.get("content-type")));
    const isBinary = format.chosen !== undefined && response.accepts(format.chosen.codec);
    const json = format.chosen === undefined ? format : streamFormatFor(accept);
    if (isBinary) return format;
    return streamResults ? withResults(json) : json;
  }

  #chosenBy({ headers }: Exchange<Source>, header: HeaderMap): ChosenCodec | undefined {
    const codecs = this.#codecs;
    if (codecs === undefined) return undefined;
    header.append("vary", "Accept");
    return codecFor(codecs, headers.get("accept"), codecOf(codecs, headers.get("content-type")));
  }

  get streamHeadWaitMs(): number {
    return this.#options.streamHeadWaitMs ?? 0;
  }

  /** Returns how often a format's heartbeat is written, in ms; undefined for never. */
  heartbeatIntervalMs({ contentType }: StreamFormat): number | undefined {
    const { heartbeatIntervalMs, ndjsonHeartbeats = false } = this.#options;
    return contentType !== NDJSON.contentType || ndjsonHeartbeats ? heartbeatIntervalMs : undefined;
  }

  /** Whether a stream is compressed. If the client's headers decide, the response gets a `Vary` header. */
  compressesStream(exchange: Exchange<Source>, header: HeaderMap): boolean {
    if (!this.#options.compressStreams || header.has("content-encoding")) return false;
    if (exchange.gzip.compressStream === undefined) return false;
    header.append("vary", "Accept-Encoding");
    return acceptsGzip(exchange.headers.get("accept-encoding"));
  }

  /** Responds to OPTIONS (RFC 9110 section 9.3.7). */
  allow(exchange: Exchange<Source>, methods: readonly string[]): void {
    const header = new HeaderMap();
    header.set("allow", methods.join(", "));
    this.#send(exchange, undefined, 204, header, undefined, 0, undefined);
  }

  /** Returns the status and the headers of a streamed response. */
  head(exchange: Exchange<Source>, endpoint: Endpoint, call: Call): [status: number, lines: string[]] {
    const { responseHeader: header } = call;
    const status = statusOf(call);
    header.delete("content-length");
    const { source: request, method } = exchange;
    this.#options.onResponse?.(header, { request, method, status, rpc: endpoint.method, failure: undefined });
    return [status, header.lines()];
  }

  #encode(failure: Failure, { target }: Exchange<Source>, endpoint: Endpoint | undefined, inBand: boolean) {
    const { registry } = endpoint?.rpc.options.jsonOptions ?? {};
    const query = target.indexOf("?");
    const path = query < 0 ? target : target.slice(0, query);
    const context = { rpc: endpoint?.method, path, inBand, registry };
    const response = (this.#options.failureEncoder ?? statusEncoder)(failure, context);
    reportInternalError(failure, response, context, this.#options.onInternalError);
    return response;
  }

  #send(
    exchange: Exchange<Source>,
    endpoint: Endpoint | undefined,
    status: number,
    header: HeaderMap,
    content: string | Uint8Array | undefined,
    length: number,
    failure: Failure | undefined,
  ): void {
    const { source: request, method } = exchange;
    this.#options.onResponse?.(header, { request, method, status, rpc: endpoint?.method, failure });
    if (content === undefined || STATUSES_WITHOUT_CONTENT.has(status)) {
      header.delete("content-type");
      header.delete("content-length");
      exchange.send(status, header.lines(), undefined);
    } else {
      header.set("content-length", String(length));
      exchange.send(status, header.lines(), method === "HEAD" ? undefined : content);
    }
  }
}

/** RFC 9110 sections 15.3.5, 15.3.6 and 15.4.5: responses with these statuses have no content. */
const STATUSES_WITHOUT_CONTENT: ReadonlySet<number> = new Set([204, 205, 304]);

function statusOf(call: Call): number {
  const status = call.lastValues.get(successStatus);
  if (status >= 200 && status < 400) return status;
  throw new Error(`${status} is not the HTTP status of a success`);
}
