import { Code, ConnectError } from "@connectrpc/connect";
import type { Exchange, ResponseStream } from "./exchange.ts";
import { FailureError, failures } from "./failure.ts";
import { HeaderMap } from "./header-map.ts";
import type { TranscoderOptions } from "./options.ts";
import { createTranscoder } from "./transcoder.ts";

/** What frameworks with fetch's types take. */
export type FetchHandler = (request: Request) => Promise<Response>;

export interface FetchHandlerOptions extends TranscoderOptions<Request> {
  /** Answers what is no route of the tables. Default: a 404 as the failure encoder has it. */
  readonly fallback?: (request: Request) => Response | Promise<Response>;
}

/**
 * Serves the routes of tables with fetch's types. A `Request` has resolved its URL already: dot segments and
 * backslashes never get here as the client wrote them.
 */
export function createFetchHandler(options: FetchHandlerOptions): FetchHandler {
  const transcoder = createTranscoder(options);
  return async (request) => {
    const target = request.url.replace(/^[^/]*\/\/[^/?#]*/, "").replace(/#.*$/s, "");
    const mark = target.indexOf("?");
    const found = transcoder.match(request.method, mark === -1 ? target : target.slice(0, mark));
    if (found.kind === "no_route" && options.fallback !== undefined) return options.fallback(request);
    const query = mark === -1 ? "" : target.slice(mark + 1);
    return new Promise((resolve) => {
      void transcoder.serve(new FetchExchange(request, target, resolve), found, query);
    });
  };
}

class FetchExchange implements Exchange<Request> {
  readonly source: Request;
  readonly target: string;
  readonly headers: HeaderMap;
  readonly #respond: (response: Response) => void;
  /** To be told that the client is gone: the request's own signal does not know that nobody reads the response. */
  readonly #listeners = new Set<() => void>();
  #gone = false;

  constructor(request: Request, target: string, respond: (response: Response) => void) {
    this.source = request;
    this.target = target;
    this.headers = new HeaderMap(Object.fromEntries(request.headers));
    this.#respond = respond;
  }

  get method(): string {
    return this.source.method;
  }

  get url(): string {
    return this.source.url;
  }

  get hasBody(): boolean {
    return this.source.body !== null;
  }

  async read(limit: number): Promise<Uint8Array> {
    if (Number(this.headers.get("content-length") ?? 0) > limit) throw new FailureError(failures.tooLarge(limit));
    const chunks: Uint8Array[] = [];
    let length = 0;
    for await (const chunk of this.source.body ?? []) {
      length += chunk.byteLength;
      if (length > limit) throw new FailureError(failures.tooLarge(limit));
      chunks.push(chunk);
    }
    return Buffer.concat(chunks);
  }

  onAbort(callback: (reason: unknown) => void): () => void {
    const { signal } = this.source;
    const onAbort = () => callback(new ConnectError("the client closed the request", Code.Canceled));
    if (signal.aborted || this.#gone) onAbort();
    else {
      signal.addEventListener("abort", onAbort);
      this.#listeners.add(onAbort);
    }
    return () => {
      signal.removeEventListener("abort", onAbort);
      this.#listeners.delete(onAbort);
    };
  }

  #onCancel(): void {
    this.#gone = true;
    for (const listener of this.#listeners) listener();
  }

  send(status: number, lines: string[], content: string | Uint8Array<ArrayBuffer> | undefined): void {
    this.#respond(new Response(content ?? null, { status, headers: toHeaders(lines) }));
  }

  giveUp(): void {
    this.#respond(new Response(null, { status: 500 }));
  }

  stream(status: number, lines: string[]): ResponseStream {
    const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
    const writer = writable.getWriter();
    // Rejected when the response's body is cancelled, whether or not a write is under way.
    writer.closed.catch(() => this.#onCancel());
    const encoder = new TextEncoder();
    this.#respond(new Response(readable, { status, headers: toHeaders(lines) }));
    return {
      write: (piece) => writer.write(typeof piece === "string" ? encoder.encode(piece) : piece),
      end: () => void writer.close().catch(() => undefined),
      cut: () => void writer.abort().catch(() => undefined),
    };
  }
}

function toHeaders(lines: readonly string[]): Headers {
  const headers = new Headers();
  for (let i = 0; i < lines.length; i += 2) headers.append(lines[i] ?? "", lines[i + 1] ?? "");
  return headers;
}
