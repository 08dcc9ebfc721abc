import type { HeaderMap } from "./header-map.ts";

/**
 * One request and the way to answer it: what the transcoder needs of a server. `Source` is the server's own request.
 */
export interface Exchange<Source> {
  readonly source: Source;
  readonly method: string;
  /** The request target in origin form, raw: the path and the query as they came, nothing resolved or decoded. */
  readonly target: string;
  /** The whole URL, for handlers and interceptors to see. */
  readonly url: string;
  readonly headers: HeaderMap;
  /** Whether the request may have content. */
  readonly hasBody: boolean;
  /**
   * Reads the whole body.
   * @throws FailureError `too_large` as soon as it is longer than `limit` bytes
   */
  read(limit: number): Promise<Uint8Array>;
  /** Calls back once if the client goes away before the response is complete. Returns a function that stops listening. */
  onAbort(callback: (reason: unknown) => void): () => void;
  /**
   * Answers.
   * @param lines header names and values, alternating, each line of its own
   */
  send(status: number, lines: string[], content: string | Uint8Array | undefined): void;
  /** Ends what cannot be answered. Never throws. */
  giveUp(): void;
  /** Begins an answer whose content comes piece by piece. */
  stream(status: number, lines: string[]): ResponseStream;
}

export interface ResponseStream {
  /** Resolves when the next piece may come. Rejects if the client has gone. */
  write(piece: string | Uint8Array): Promise<void>;
  end(): void;
  /** Cuts the response, so that the client sees that it is not whole. */
  cut(): void;
}
