import type { BodyChunks } from "./body-chunks.ts";
import type { HeaderMap } from "./header-map.ts";

/**
 * One request and its response: the interface between the request handler and a server. `Source` is the server's own
 * request type.
 */
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
  /**
   * The body, decoded, if middleware has read it before (`request.body`); undefined if it is still to be read.
   * @param raw whether the bytes are needed as they were sent
   * @throws Error if the body was read and is lost
   */
  bodyReadBefore(raw: boolean): Uint8Array | undefined;
  /**
   * Reads the whole body.
   * @param meter takes note of what is in memory
   * @throws FailureError `too_large` as soon as it is longer than `limit` bytes, or the refusal of the meter
   */
  read(limit: number, meter?: BodyMeter): Promise<Uint8Array>;
  /** Reads the body piece by piece. */
  chunks(): BodyChunks;
  /** Whether the client can read the response while it sends the request. */
  readonly fullDuplex: boolean;
  /** Calls back once if the client disconnects before the response is complete. Returns a function that unsubscribes. */
  onAbort(callback: (reason: unknown) => void): () => void;
  /**
   * Sends the whole response.
   * @param lines header names and values, alternating, one pair per header line
   */
  send(status: number, lines: string[], content: string | Uint8Array | undefined): void;
  /** Ends the exchange with 500 and no content, for failures that cannot be encoded. Never throws. */
  sendServerError(): void;
  /** Starts a streamed response. */
  stream(status: number, lines: string[]): ResponseStream;
}

/** Takes note of a body while it arrives. */
export interface BodyMeter {
  /** So many bytes of it are in memory, and more are waited for. */
  arriving(bytes: number): void;
  /** Calls back when the body is to be given up: what has come of it is dropped. */
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

/** gzip as a server has it: node:zlib, or the streams of the web. */
export interface Gzip {
  compress(content: string | Uint8Array): Promise<Uint8Array>;
  /**
   * Decompresses a whole body.
   * @returns undefined if it is longer than `maxBytes`
   * @throws whatever the implementation throws for what is not gzip
   */
  expand(content: Uint8Array, maxBytes: number): Promise<Uint8Array | undefined>;
  /** Decompresses a body piece by piece. A piece that is not gzip makes `next` reject with BadInput. */
  expandChunks(body: BodyChunks): BodyChunks;
  /** Compresses a streamed response; each write is flushed, so that every message arrives at once. undefined: cannot be flushed. */
  readonly compressStream: ((response: ResponseStream) => ResponseStream) | undefined;
}
