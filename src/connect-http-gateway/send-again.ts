/** Sends calls again that the server has provably not processed, for example because it stops (RFC 9113 section 8.7). */
import { type ClientHttp2Session, type ClientHttp2Stream, constants } from "node:http2";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Transport } from "@connectrpc/connect";
import { createAsyncIterable } from "@connectrpc/connect/protocol";

/** How often a call is sent at most: both connections to a server that stops may refuse it, before a new one serves it. */
const MAX_SENDS = 3;

/** Errors of streams that the server has not processed, and will not. */
const unprocessed = new WeakSet<Error>();

/** The last stream that the server processes, by the GOAWAY of its connection. Before that it is infinite. */
const lastStreams = new WeakMap<ClientHttp2Session, number>();

/** The type of the frame that opens a stream (RFC 9113 section 6.2). */
const HEADERS_FRAME = 1;

const NOTES = Symbol("notes");

/** A stream with what is noted of it. All streams share their listeners, because Node keeps them until the next full garbage collection. */
type NotedStream = ClientHttp2Stream & {
  [NOTES]?: { readonly session: ClientHttp2Session | undefined; hasHead: boolean; isUnsent: boolean };
};

/**
 * Notes whether the error of a stream means that the server has not processed it. A stream that ends without a response gets an error, for
 * which connect-node would wait.
 */
export function noteUnprocessed<Stream extends ClientHttp2Stream>(stream: Stream): Stream {
  const session = stream.session as ClientHttp2Session | undefined;
  if (session !== undefined && !lastStreams.has(session)) {
    lastStreams.set(session, Number.POSITIVE_INFINITY);
    session.on("goaway", onGoaway);
  }
  (stream as NotedStream)[NOTES] = { session, hasHead: false, isUnsent: false };
  return stream.on("response", onResponse).on("frameError", onFrameError).on("error", onError).on("close", onClose);
}

function onGoaway(this: ClientHttp2Session, _code: number, lastStream: number): void {
  lastStreams.set(this, lastStream);
}

function onResponse(this: NotedStream): void {
  if (this[NOTES]) this[NOTES].hasHead = true;
}

/** Node could not send the frame: the connection ended while the call was waiting for a free stream. */
function onFrameError(this: NotedStream, type: number): void {
  if (this[NOTES] && type === HEADERS_FRAME) this[NOTES].isUnsent = true;
}

function onError(this: NotedStream, error: Error): void {
  const { session, hasHead, isUnsent } = this[NOTES] ?? { hasHead: true };
  // Node reports streams that a GOAWAY without an error excludes as refused.
  const isRefused = this.rstCode === constants.NGHTTP2_REFUSED_STREAM;
  const isExcluded = session !== undefined && (this.id ?? 0) > (lastStreams.get(session) ?? Number.POSITIVE_INFINITY);
  if (isUnsent || (!hasHead && (isRefused || isExcluded))) unprocessed.add(error);
}

function onClose(this: NotedStream): void {
  const isSilent = this[NOTES]?.hasHead === false && this.rstCode === constants.NGHTTP2_NO_ERROR;
  if (isSilent) this.emit("error", new Error("the stream was closed without a response"));
}

function isUnprocessed(reason: unknown): boolean {
  for (let error = reason; error instanceof Error; error = error.cause) {
    if (unprocessed.has(error)) return true;
  }
  return false;
}

/** @param send makes the call with the time that is left of its timeout, in milliseconds */
export async function sendAgain<T>(
  timeoutMs: number | undefined,
  send: (leftMs: number | undefined) => Promise<T>,
): Promise<T> {
  const startMs = performance.now();
  for (let sends = 1; ; sends++) {
    try {
      const leftMs = timeoutMs && Math.max(1, Math.ceil(timeoutMs - (performance.now() - startMs)));
      return await send(leftMs);
    } catch (error) {
      // A call may fail before its stream reports the error that has been noted.
      await new Promise(setImmediate);
      if (sends === MAX_SENDS || !isUnprocessed(error)) throw error;
    }
  }
}

/** Streams of requests are not sent again, because they would have to be kept. */
export function sendingStreamsAgain({ stream }: Pick<Transport, "stream">): Transport["stream"] {
  return async (method, signal, timeoutMs, header, input, values) => {
    if (method.methodKind !== "server_streaming") return stream(method, signal, timeoutMs, header, input, values);
    const messages: MessageInitShape<typeof method.input>[] = [];
    for await (const message of input) messages.push(message);
    const send = (leftMs: number | undefined) =>
      stream(method, signal, leftMs, header, createAsyncIterable(messages), values);
    return sendAgain(timeoutMs, send);
  };
}
