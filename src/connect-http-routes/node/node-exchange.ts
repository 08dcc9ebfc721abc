import type { IncomingMessage } from "node:http";
import { Http2ServerRequest } from "node:http2";
import { type BodyChunks, chunksOf } from "../call/body-chunks.ts";
import { clientDisconnected } from "../call/errors.ts";
import type { BodyMeter, ResponseStream, TrailerExchange } from "../call/exchange.ts";
import { HeaderMap } from "../call/header-map.ts";
import { NO_BYTES, utf8Length } from "../codec/bytes.ts";
import { FailureError, failures } from "../response/failure.ts";
import { nodeGzip } from "./gzip.ts";
import { respondWithinBody } from "./lingering-close.ts";
import { abort, endStream, isClosed, type NodeResponse, sendWithTrailers, write, writeHead } from "./node-response.ts";
import { takeReadBefore } from "./read-before.ts";
import { ReadableChunks } from "./readable-chunks.ts";

export type NodeRequest = IncomingMessage | Http2ServerRequest;

/**
 * Takes the whole body from the stream if Node has parsed it together with the head, because listening to the stream would cost more than
 * the rest of such a request. Returns undefined if the body has not arrived or somebody else reads it, and for HTTP/2, which does not show
 * whether it has arrived. The caller must call `endTaken` before it responds.
 */
export function takeArrived(request: NodeRequest): Uint8Array | undefined {
  if (request instanceof Http2ServerRequest || request.destroyed) return undefined;
  if (request.readableDidRead || request.readableFlowing !== null) return undefined;
  // Node passes on the last bytes of a body before it sets `complete`. So the number of bytes is compared with `Content-Length` too, which
  // Node's parser has checked to consist of digits.
  const isWhole = request.complete || request.readableLength === Number(request.headers["content-length"]);
  return isWhole ? ((request.read() as Buffer | null) ?? NO_BYTES) : undefined;
}

/** Ends the stream of a request whose body was taken, because there may be listeners for its `end` and `close` events. */
export function endTaken(request: NodeRequest): void {
  if (request.complete) request.read(0);
  else request.resume();
}

export class NodeExchange implements TrailerExchange<NodeRequest> {
  readonly gzip = nodeGzip;
  readonly source: NodeRequest;
  readonly target: string;
  readonly headers: HeaderMap;
  readonly method: string;
  readonly isReadBefore: boolean;
  readonly #response: NodeResponse;
  readonly #keepsConnection: boolean;
  /** Whether the response is sent while the request body is still arriving. */
  #bodyUnfinished = false;
  /** Whether the body was taken from a stream that has not ended. */
  #bodyTaken = false;

  /** @param keepsConnection whether a response that is sent before the whole body has arrived leaves the connection open */
  constructor(request: NodeRequest, response: NodeResponse, target: string, method: string, keepsConnection = false) {
    this.source = request;
    this.target = target;
    this.method = method;
    this.headers = new HeaderMap(request.headers);
    this.isReadBefore = request.readableDidRead || request.readableEnded;
    this.#response = response;
    this.#keepsConnection = keepsConnection;
  }

  get url(): string {
    const { source } = this;
    const secure = "encrypted" in source.socket && source.socket.encrypted === true;
    const authority = (source instanceof Http2ServerRequest ? source.authority : source.headers.host) || "localhost";
    return `${secure ? "https" : "http"}://${authority}${this.target}`;
  }

  get peerAddress(): string | undefined {
    return this.source.socket.remoteAddress;
  }

  get hasBody(): boolean {
    const { source } = this;
    const length = source.headers["content-length"];
    if (length !== undefined) return length !== "0";
    if (source instanceof Http2ServerRequest) return !source.stream.endAfterHeaders;
    return source.headers["transfer-encoding"] !== undefined;
  }

  read(limit: number, raw: boolean, meter?: BodyMeter): Uint8Array | Promise<Uint8Array> {
    if (this.isReadBefore) {
      const before = takeReadBefore(this.source, raw);
      if (before.byteLength > limit) throw new FailureError(failures.tooLarge(limit));
      return before;
    }
    const length = this.source.headers["content-length"];
    if (length === undefined ? !this.hasBody : length === "0") return NO_BYTES;
    // Node's parser has checked that the length consists of digits.
    if (length !== undefined && Number(length) > limit) throw this.#tooLarge(limit);
    const arrived = takeArrived(this.source);
    if (arrived === undefined) return this.#readArriving(limit, meter);
    this.#bodyTaken = true;
    if (arrived.byteLength > limit) throw this.#tooLarge(limit);
    return arrived;
  }

  #readArriving(limit: number, meter?: BodyMeter): Promise<Uint8Array> {
    const request = this.source;
    // A closed request emits no events, so the promise would never settle.
    if (request.destroyed || isClosed(this.#response)) return Promise.reject(clientDisconnected());
    return new Promise((resolve, reject) => {
      const chunks: Buffer[] = [];
      let length = 0;
      const giveUp = (reason: Error) => {
        chunks.length = 0;
        length = Number.POSITIVE_INFINITY;
        this.#bodyUnfinished = true;
        reject(reason);
      };
      meter?.onRefused(giveUp);
      meter?.arriving(0);
      // The listeners stay: removing them costs more than calling them after the promise has settled.
      request.on("data", (chunk: Buffer) => {
        length += chunk.byteLength;
        if (length > limit) return giveUp(this.#tooLarge(limit));
        chunks.push(chunk);
        meter?.arriving(length);
      });
      request.on("end", () => {
        // If the client has reset an HTTP/2 stream, Node emits `end` as for a complete body, but the response is closed.
        if (isClosed(this.#response)) return reject(clientDisconnected());
        resolve(chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks));
      });
      const onDisconnect = () => {
        if (!request.readableEnded) reject(clientDisconnected());
      };
      request.on("error", onDisconnect);
      request.on("close", onDisconnect);
    });
  }

  /** HTTP/1.1 clients and proxies read the response only after they have sent the request. */
  get fullDuplex(): boolean {
    return this.source instanceof Http2ServerRequest;
  }

  chunks(raw: boolean): BodyChunks {
    if (this.isReadBefore) return chunksOf(takeReadBefore(this.source, raw));
    const request = this.source;
    const chunks = new ReadableChunks(request, clientDisconnected);
    this.#bodyUnfinished = true;
    return {
      next: async () => {
        const chunk = await chunks.next();
        if (chunk !== undefined) return chunk;
        // If the client has reset an HTTP/2 stream, the stream ends as if the body were complete.
        if (request.aborted) throw clientDisconnected();
        this.#bodyUnfinished = false;
        return undefined;
      },
      cancel: (reason) => chunks.cancel(reason),
    };
  }

  /** Returns the error of a body that is too large. The connection is closed after the response (RFC 9110 section 15.5.14). */
  #tooLarge(limit: number): FailureError {
    this.#bodyUnfinished = true;
    return new FailureError(failures.tooLarge(limit));
  }

  onAbort(callback: (reason: unknown) => void): () => void {
    const response = this.#response;
    // The response's `close` event is used, because the request emits its own as soon as its body has been read.
    const onClose = () => {
      if (!response.writableEnded) callback(clientDisconnected());
    };
    if (isClosed(response)) onClose();
    else response.once("close", onClose);
    return () => response.off("close", onClose);
  }

  send(status: number, lines: string[], content: string | Uint8Array | undefined): void {
    const response = this.#response;
    if (isClosed(response)) return;
    // If the call fails after the head was sent, the response stays incomplete.
    if (response.headersSent) abort(response);
    else if (this.#bodyUnfinished && !this.#keepsConnection)
      respondWithinBody(this.source, response, status, lines, content);
    else {
      if (this.#bodyTaken) endTaken(this.source);
      writeHead(response, status, lines);
      if (content === undefined) response.end();
      else
        response.end(
          content,
          typeof content === "string" && utf8Length(content) === content.length ? "latin1" : "utf8",
        );
    }
  }

  sendWithTrailers(lines: string[], content: Uint8Array | undefined, trailers: string[]): void {
    if (!isClosed(this.#response)) sendWithTrailers(this.#response, lines, content, trailers);
  }

  sendServerError(): void {
    const response = this.#response;
    if (response.headersSent) abort(response);
    else {
      response.statusCode = 500;
      response.end();
    }
  }

  stream(status: number, lines: string[]): ResponseStream {
    const response = this.#response;
    if (this.#bodyTaken) endTaken(this.source);
    writeHead(response, status, lines);
    return {
      flush: () => "stream" in response || response.flushHeaders(),
      write: (chunk) => write(response, chunk),
      end: () => endStream(response, this.#bodyUnfinished),
      abort: () => abort(response),
    };
  }
}
