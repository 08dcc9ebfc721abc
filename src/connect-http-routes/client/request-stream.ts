import type { DescMethod, Message, Registry } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import type { Route } from "../routes/model.ts";
import { type EncodedRequest, encodeRequest, type FetchBody } from "./encode.ts";

export interface EncodedStream {
  readonly first: EncodedRequest;
  readonly body: FetchBody | undefined;
  /** Returns the error that kept the messages from being sent, because `fetch` reports only that it failed. */
  failure?(): { readonly reason: unknown } | undefined;
}

const LINES = "application/x-ndjson";

/**
 * Encodes a stream of requests, with path, query and content type of the first message. If `fetch` cannot send a stream, all messages
 * are collected first.
 * @throws ConnectError if a later message has another path or query
 */
export async function encodeStream(
  method: DescMethod,
  routes: readonly Route[],
  messages: AsyncIterable<Message>,
  registry: Registry | undefined,
): Promise<EncodedStream> {
  const iterator = messages[Symbol.asyncIterator]();
  const result = await iterator.next();
  if (result.done) throw new ConnectError("a request stream needs at least one message", Code.InvalidArgument);
  const first = encodeRequest(method, routes, result.value, registry);
  if (method.methodKind === "server_streaming") return { first, body: first.body as FetchBody | undefined };
  const encoder = new TextEncoder();
  const raw = typeof first.body !== "string" && first.contentType !== "application/json";
  const piece = ({ body = raw ? "" : "{}" }: EncodedRequest): Uint8Array =>
    typeof body === "string" ? encoder.encode(raw ? body : `${body}\n`) : body;
  let failure: { readonly reason: unknown } | undefined;
  async function next(): Promise<Uint8Array | undefined> {
    try {
      const { done, value } = await iterator.next();
      if (done) return undefined;
      const request = encodeRequest(method, [first.route], value, registry);
      if (request.target === first.target) return piece(request);
      throw new ConnectError("the messages of a stream share their path and query", Code.InvalidArgument);
    } catch (reason) {
      failure = { reason };
      throw reason;
    }
  }
  const head = { ...first, contentType: raw ? first.contentType : LINES };
  const body = sendsStreams()
    ? streamOf(piece(first), next)
    : new Blob((await collect(piece(first), next)) as Uint8Array<ArrayBuffer>[]);
  return { first: head, body, failure: () => failure };
}

function streamOf(first: Uint8Array, next: () => Promise<Uint8Array | undefined>): ReadableStream<Uint8Array> {
  return new ReadableStream(
    {
      start: (controller) => controller.enqueue(first),
      async pull(controller) {
        const piece = await next();
        if (piece === undefined) controller.close();
        else controller.enqueue(piece);
      },
    },
    { highWaterMark: 0 },
  );
}

async function collect(first: Uint8Array, next: () => Promise<Uint8Array | undefined>): Promise<Uint8Array[]> {
  const pieces = [first];
  for (let piece = await next(); piece !== undefined; piece = await next()) pieces.push(piece);
  return pieces;
}

/** Whether `fetch` can send a stream as a body. If it can, it reads the option `duplex` and sets no content type. */
function sendsStreams(): boolean {
  let duplexRead = false;
  const init = {
    method: "POST",
    body: new ReadableStream(),
    get duplex() {
      duplexRead = true;
      return "half" as const;
    },
  };
  try {
    const hasContentType = new Request("https://x.invalid", init).headers.has("content-type");
    return duplexRead && !hasContentType;
  } catch {
    return false;
  }
}
