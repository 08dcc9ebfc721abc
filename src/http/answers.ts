import { Code, ConnectError } from "@connectrpc/connect";
import { mergeNonProtocolHeaders } from "@connectrpc/connect/protocol";
import type { Call } from "./call.ts";
import { gzip } from "./compression.ts";
import type { Endpoint } from "./endpoints.ts";
import type { Exchange } from "./exchange.ts";
import { type Failure, failureFrom, statusEncoder } from "./failure.ts";
import { HeaderMap } from "./header-map.ts";
import { acceptsGzip } from "./negotiation.ts";
import type { TranscoderOptions } from "./options.ts";
import type { Payload } from "./response-codec.ts";
import { successStatus } from "./success-status.ts";

/** Makes answers of results and failures, and sends them. */
export class Answers<Source> {
  readonly #options: TranscoderOptions<Source>;

  constructor(options: TranscoderOptions<Source>) {
    this.#options = options;
  }

  async succeed(exchange: Exchange<Source>, endpoint: Endpoint, call: Call, payload: Payload): Promise<void> {
    const { responseHeader: header, responseTrailer: trailer } = call;
    const { compressMinBytes, writeMaxBytes } = endpoint.rpc.options;
    if (this.#options.trailersAsHeaders) for (const [name, value] of trailer) header.append(`trailer-${name}`, value);
    let { content } = payload;
    checkLength(content, writeMaxBytes);
    if (this.#options.compress !== false && byteLength(content) >= compressMinBytes) {
      header.append("vary", "Accept-Encoding");
      if (acceptsGzip(exchange.headers.get("accept-encoding")) && !header.has("content-encoding")) {
        content = await gzip(content);
        header.set("content-encoding", "gzip");
      }
    }
    if (!header.has("content-type")) header.set("content-type", payload.contentType);
    this.#send(exchange, endpoint, statusOf(call), header, content, undefined);
  }

  /** What the handler and the error have to say in headers is said: both cookies, `WWW-Authenticate`, `Retry-After`. */
  fail(exchange: Exchange<Source>, endpoint: Endpoint | undefined, call: Call | undefined, reason: unknown): void {
    const failure = failureFrom(reason);
    const header = call?.responseHeader ?? new HeaderMap();
    if (!failure.error.isWireError) mergeNonProtocolHeaders(header, failure.error.metadata);
    const answer = this.#encode(failure, endpoint, false);
    if (failure.kind === "method_not_allowed") header.set("allow", failure.allow.join(", "));
    for (const [name, value] of Object.entries(answer.headers ?? {})) header.set(name, value);
    header.delete("content-encoding");
    header.set("content-type", "application/json");
    this.#send(exchange, endpoint, answer.status ?? failure.status, header, JSON.stringify(answer.body), failure);
  }

  /** The body of a failure for which it is too late to be an answer of its own. */
  failureInBand(endpoint: Endpoint, reason: unknown) {
    return this.#encode(failureFrom(reason), endpoint, true).body;
  }

  /** RFC 9110 section 9.3.7: what the path can do. */
  allow(exchange: Exchange<Source>, methods: readonly string[]): void {
    const header = new HeaderMap();
    header.set("allow", methods.join(", "));
    this.#send(exchange, undefined, 204, header, undefined, undefined);
  }

  /** The status and the headers of an answer whose content comes later. */
  head(exchange: Exchange<Source>, endpoint: Endpoint, call: Call): [status: number, lines: string[]] {
    const { responseHeader: header } = call;
    const status = statusOf(call);
    header.delete("content-length");
    this.#announce(exchange, endpoint, status, header, undefined);
    return [status, header.lines()];
  }

  #encode(failure: Failure, endpoint: Endpoint | undefined, inBand: boolean) {
    return (this.#options.failureEncoder ?? statusEncoder)(failure, { rpc: endpoint?.method, inBand });
  }

  #announce(
    { source: request, method }: Exchange<Source>,
    endpoint: Endpoint | undefined,
    status: number,
    header: HeaderMap,
    failure: Failure | undefined,
  ): void {
    this.#options.onAnswer?.(header, { request, method, status, rpc: endpoint?.method, failure });
  }

  #send(
    exchange: Exchange<Source>,
    endpoint: Endpoint | undefined,
    status: number,
    header: HeaderMap,
    content: string | Uint8Array | undefined,
    failure: Failure | undefined,
  ): void {
    this.#announce(exchange, endpoint, status, header, failure);
    if (content === undefined || withoutContent.has(status)) {
      header.delete("content-type");
      header.delete("content-length");
      exchange.send(status, header.lines(), undefined);
    } else {
      header.set("content-length", String(byteLength(content)));
      exchange.send(status, header.lines(), exchange.method === "HEAD" ? undefined : content);
    }
  }
}

/** RFC 9110 sections 15.3.5, 15.3.6 and 15.4.5: whatever the handler returned, these have no content. */
const withoutContent: ReadonlySet<number> = new Set([204, 205, 304]);

function statusOf(call: Call): number {
  const status = call.lastValues.get(successStatus);
  if (status >= 200 && status < 400) return status;
  throw new Error(`${status} is not the HTTP status of a success`);
}

/** @throws ConnectError as connect-es has it */
export function checkLength(content: string | Uint8Array, limit: number): void {
  const length = byteLength(content);
  if (length <= limit) return;
  throw new ConnectError(
    `message size ${length} is larger than configured writeMaxBytes ${limit}`,
    Code.ResourceExhausted,
  );
}

function byteLength(content: string | Uint8Array): number {
  return typeof content === "string" ? Buffer.byteLength(content) : content.byteLength;
}
