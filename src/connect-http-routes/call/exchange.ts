import type { BodyChunks } from "./body-chunks.ts";
import type { HeaderMap } from "./header-map.ts";

/** One request and its response: the interface between the request handler and a server. `Source` is the server's own type of a request. */
export interface Exchange<Source> {
  readonly gzip: Gzip;
  readonly source: Source;
  readonly method: string;
  /** The raw request target in origin form: path and query, not normalised, not decoded. */
  readonly target: string;
  /** The absolute URL for handlers and interceptors. */
  readonly url: string;
  readonly headers: HeaderMap;
  /** The network address of the client, if it is known. */
  readonly peerAddress: string | undefined;
  /** Whether the request may have a body. */
  readonly hasBody: boolean;
  /** Whether middleware has read the body, and decompressed it. */
  readonly isReadBefore: boolean;
  /**
   * Reads the whole body, or takes what middleware has read (`request.body`). Returns a promise only if it has not arrived yet.
   * @param raw whether the bytes are needed as they were sent
   * @param meter is notified of the bytes in memory
   * @throws FailureError `too_large` as soon as the body is longer than `limit` bytes, or the error with which `meter` refuses the body
   * @throws Error if middleware has read the body and it is lost
   */
  read(limit: number, raw: boolean, meter?: BodyMeter): Uint8Array | Promise<Uint8Array>;
  /** Reads the body piece by piece, or takes what middleware has read. @throws as `read` */
  chunks(raw: boolean): BodyChunks;
  /** Whether the client can read the response while it sends the request. */
  readonly fullDuplex: boolean;
  /** Calls back once if the client disconnects before the response is complete. Returns a function that unsubscribes. */
  onAbort(callback: (reason: unknown) => void): () => void;
  /** Sends the whole response. @param lines header names and values, alternating, one pair per header line */
  send(status: number, lines: string[], content: string | Uint8Array | undefined): void;
  /** Ends the exchange with 500 and no content, for failures that cannot be encoded. Never throws. */
  sendServerError(): void;
  stream(status: number, lines: string[]): ResponseStream;
}

/** An exchange over HTTP/2. */
export interface TrailerExchange<Source> extends Exchange<Source> {
  /** Sends a whole response with status 200 and trailers. */
  sendWithTrailers(lines: string[], content: Uint8Array | undefined, trailers: string[]): void;
}

/** Records how much of a body is in memory while it arrives. */
export interface BodyMeter {
  /** Records that this many bytes of the body are in memory and that more are expected. */
  arriving(bytes: number): void;
  /** Sets the callback for a body that is refused: the bytes that have arrived are then dropped. */
  onRefused(callback: (refusal: Error) => void): void;
}

export interface ResponseStream {
  /** Sends the headers now; otherwise they are sent with the first chunk. */
  flush(): void;
  /** Resolves when the next chunk may be written. Rejects if the client has disconnected. */
  write(piece: string | Uint8Array): Promise<void>;
  end(): void;
  /** Aborts the response, so that the client sees that it is incomplete. */
  abort(): void;
}

/** The functions of gzip that the server provides: those of node:zlib, or the streams of the web. */
export interface Gzip {
  compress(content: string | Uint8Array): Promise<Uint8Array>;
  /** Decompresses a whole body. @returns undefined if it is longer than `maxBytes` @throws any error if the body is not gzip */
  expand(content: Uint8Array, maxBytes: number): Promise<Uint8Array | undefined>;
  /** Decompresses a body piece by piece. `next` rejects with BadInput if the body is not gzip. */
  expandChunks(body: BodyChunks): BodyChunks;
  /** Compresses a streamed response and flushes each write, so that messages arrive at once. Undefined if that is not possible. */
  readonly compressStream: ((response: ResponseStream) => ResponseStream) | undefined;
}
