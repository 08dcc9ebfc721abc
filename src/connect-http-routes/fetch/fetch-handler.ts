import type { BodyChunks } from "../call/body-chunks.ts";
import { clientDisconnected } from "../call/errors.ts";
import type { BodyMeter, Exchange, Gzip, ResponseStream } from "../call/exchange.ts";
import { HeaderMap } from "../call/header-map.ts";
import { BadInput } from "../codec/bad-input.ts";
import { concatBytes } from "../codec/bytes.ts";
import { createRequestHandler } from "../handler.ts";
import type { HandlerOptions } from "../options.ts";
import { FailureError, failures } from "../response/failure.ts";
import { METHOD_OVERRIDE } from "../routes/method-override.ts";

/** A request handler for frameworks that use the types of fetch. */
export type FetchHandler = (request: Request) => Promise<Response>;

export type FetchHandlerOptions = HandlerOptions<Request> & {
  /** Handles requests that match no route. Default: a 404 from the failure encoder. */
  readonly fallback?: (request: Request) => Response | Promise<Response>;
};

export type CreateFetchHandler = (options: FetchHandlerOptions) => FetchHandler;

/** Creates `createFetchHandler` for a runtime with this implementation of gzip. */
export const fetchHandlersWith =
  (gzip: Gzip): CreateFetchHandler =>
  (options) =>
    createFetchHandler(options, gzip);

/** Serves route tables with the types of fetch. A `Request` has already normalised its URL (dot segments, backslashes). */
function createFetchHandler(options: FetchHandlerOptions, gzip: Gzip): FetchHandler {
  const handler = createRequestHandler(options);
  return async (request) => {
    const target = request.url.replace(/^[^/]*\/\/[^/?#]*/, "").replace(/#.*$/s, "");
    const mark = target.indexOf("?");
    const path = mark === -1 ? target : target.slice(0, mark);
    const override = request.headers.get(METHOD_OVERRIDE);
    const method = handler.methodOverride?.(request.method, override, path) ?? request.method;
    const match = handler.match(method, path);
    if (match.kind === "no_route" && options.fallback !== undefined) return options.fallback(request);
    const query = mark === -1 ? "" : target.slice(mark + 1);
    return new Promise((resolve) => {
      void handler.serve(new FetchExchange(request, target, method, { gzip, respond: resolve }), match, query);
    });
  };
}

/** Reads the body of a request as a whole. In Firefox a request has no `body`. */
function wholeBody(request: Request): ReadableStream<Uint8Array> {
  return new ReadableStream({
    async pull(controller) {
      const bytes = new Uint8Array(await request.arrayBuffer());
      if (bytes.length > 0) controller.enqueue(bytes);
      controller.close();
    },
  });
}

class FetchExchange implements Exchange<Request> {
  readonly gzip: Gzip;
  readonly source: Request;
  readonly target: string;
  readonly method: string;
  readonly headers: HeaderMap;
  readonly #respond: (response: Response) => void;
  /** Callbacks for a cancelled response body, which the request's signal does not report. */
  readonly #listeners = new Set<() => void>();
  #cancelled = false;

  constructor(
    request: Request,
    target: string,
    method: string,
    { gzip, respond }: { readonly gzip: Gzip; readonly respond: (response: Response) => void },
  ) {
    this.gzip = gzip;
    this.source = request;
    this.target = target;
    this.method = method;
    this.headers = new HeaderMap(Object.fromEntries(request.headers));
    this.#respond = respond;
  }

  get url(): string {
    return this.source.url;
  }

  get peerAddress(): undefined {
    return undefined;
  }

  get hasBody(): boolean {
    return this.source.body !== null;
  }

  get isReadBefore(): false {
    return false;
  }

  async read(limit: number, _raw: boolean, meter?: BodyMeter): Promise<Uint8Array> {
    if (Number(this.headers.get("content-length") ?? 0) > limit) throw new FailureError(failures.tooLarge(limit));
    const body = this.chunks();
    const chunks: Uint8Array[] = [];
    let length = 0;
    meter?.onRefused((refusal) => body.cancel(refusal));
    meter?.arriving(0);
    for (let chunk = await body.next(); chunk !== undefined; chunk = await body.next()) {
      length += chunk.byteLength;
      if (length > limit) {
        const failure = new FailureError(failures.tooLarge(limit));
        body.cancel(failure);
        throw failure;
      }
      chunks.push(chunk);
      meter?.arriving(length);
    }
    return concatBytes(chunks);
  }

  /** This is always true, because the server that calls the handler decides whether request and response overlap. */
  get fullDuplex(): boolean {
    return true;
  }

  chunks(): BodyChunks {
    if (this.source.bodyUsed) throw new Error("the body of the Request has been read before: pass a clone");
    const { body = wholeBody(this.source) } = this.source;
    const reader = body?.getReader();
    let cancelled: { readonly reason: unknown } | undefined;
    return {
      async next() {
        try {
          const result = await reader?.read();
          if (cancelled === undefined) return result?.value;
        } catch {
          if (cancelled === undefined) throw new BadInput("body", undefined, "incomplete");
        }
        throw cancelled.reason;
      },
      cancel(reason) {
        cancelled ??= { reason };
        void reader?.cancel(reason).catch(() => undefined);
      },
    };
  }

  onAbort(callback: (reason: unknown) => void): () => void {
    const { signal } = this.source;
    const onAbort = () => callback(clientDisconnected());
    if (signal.aborted || this.#cancelled) onAbort();
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
    this.#cancelled = true;
    for (const listener of this.#listeners) listener();
  }

  send(status: number, lines: string[], content: string | Uint8Array<ArrayBuffer> | undefined): void {
    this.#respond(new Response(content ?? null, { status, headers: toHeaders(lines) }));
  }

  sendServerError(): void {
    this.#respond(new Response(null, { status: 500 }));
  }

  stream(status: number, lines: string[]): ResponseStream {
    const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
    const writer = writable.getWriter();
    // Rejects when the response body is cancelled, whether or not a write is pending.
    writer.closed.catch(() => this.#onCancel());
    const encoder = new TextEncoder();
    this.#respond(new Response(readable, { status, headers: toHeaders(lines) }));
    return {
      flush: () => undefined,
      write: (chunk) => writer.write(typeof chunk === "string" ? encoder.encode(chunk) : chunk),
      end: () => void writer.close().catch(() => undefined),
      abort: () => void writer.abort().catch(() => undefined),
    };
  }
}

function toHeaders(lines: readonly string[]): Headers {
  const headers = new Headers();
  for (let i = 0; i < lines.length; i += 2) headers.append(lines[i] ?? "", lines[i + 1] ?? "");
  return headers;
}
