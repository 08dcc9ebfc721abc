import type { Message } from "@bufbuild/protobuf";
import type { Call } from "../call/call.ts";
import type { Endpoint } from "../call/endpoints.ts";
import type { Exchange, ResponseStream } from "../call/exchange.ts";
import { prefixMetadata } from "../call/metadata-prefix.ts";
import { byteLength } from "../codec/bytes.ts";
import { tooLong } from "./failure.ts";
import type { Responses } from "./responses.ts";
import type { StreamFormat } from "./stream-format.ts";
import { withHeartbeat } from "./stream-layers.ts";

type Result = IteratorResult<Message>;

/**
 * Sends a stream of messages. If the call fails within `streamHeadWaitMs`, the failure is an ordinary response. Then the headers are sent,
 * even without a first message, and a failure becomes the last message. A stream of google.api.HttpBody waits for its first message,
 * which has the content type.
 */
export async function sendStream<Source>(
  responses: Responses<Source>,
  exchange: Exchange<Source>,
  endpoint: Endpoint,
  call: Call,
  messages: AsyncIterable<Message>,
): Promise<void> {
  const iterator = messages[Symbol.asyncIterator]();
  const format = responses.streamFormat(exchange, endpoint);
  const next = iterator.next();
  const first = endpoint.raw ? await next : await settled(next, responses.streamHeadWaitMs);
  const compress = responses.compressesStream(exchange, call.responseHeader);
  const head = () => {
    if (endpoint.grpcMetadata) prefixMetadata(call.responseHeader);
    setStreamHeaders(call, format, first, endpoint, compress);
    return responses.head(exchange, endpoint, call);
  };
  const [status, lines] = orRelease(head, iterator, next);
  if (exchange.method === "HEAD") {
    exchange.send(status, lines, undefined);
    call.end();
    release(iterator, next);
    return;
  }
  const socket = exchange.stream(status, lines);
  if (first === undefined) socket.flush();
  const compressed = compress ? (exchange.gzip.compressStream?.(socket) ?? socket) : socket;
  const response = withHeartbeat(compressed, format.heartbeat, responses.heartbeatIntervalMs(format));
  const stop = exchange.onAbort((reason) => call.end(reason));
  let started = false;
  try {
    if (format.open !== "") await response.write(format.open);
    for (let result = first ?? (await next); !result.done; result = await iterator.next()) {
      const chunk = format.chunk(endpoint.response.encode(result.value, format.chosen), !started);
      const [length, limit] = [byteLength(chunk), endpoint.rpc.options.writeMaxBytes];
      if (length > limit) throw tooLong(length, limit);
      await response.write(chunk);
      started = true;
    }
    if (format.close !== "") await response.write(format.close);
    response.end();
    call.end();
  } catch (reason) {
    call.end(reason);
    await closeWith(failureText(responses, exchange, endpoint, format, reason, !started), format, response);
    release(iterator, next);
  } finally {
    stop();
  }
}

function setStreamHeaders(
  { responseHeader: header }: Call,
  format: StreamFormat,
  first: Result | undefined,
  endpoint: Endpoint,
  compress: boolean,
): void {
  const ofFirst = () =>
    first === undefined || first.done ? undefined : endpoint.response.encode(first.value).contentType;
  const contentType = format.contentType ?? ofFirst() ?? "application/octet-stream";
  if (!header.has("content-type")) header.set("content-type", contentType);
  if (!header.has("cache-control")) header.set("cache-control", "no-cache");
  // Without this header nginx would buffer the events.
  if (contentType === "text/event-stream" && !header.has("x-accel-buffering")) header.set("x-accel-buffering", "no");
  header.append("vary", "Accept");
  if (compress) header.set("content-encoding", "gzip");
}

/** Waits for a promise for some time, at least one turn of the event loop. Returns undefined if it has not settled by then. */
function settled<T>(promise: Promise<T>, waitMs: number): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    const cancel = waitMs === 0 ? afterTurn(() => resolve(undefined)) : after(waitMs, () => resolve(undefined));
    promise.then(resolve, reject).finally(cancel);
  });
}

function after(ms: number, then: () => void): () => void {
  const timer = setTimeout(then, ms);
  return () => clearTimeout(timer);
}

/** Calls back in the next turn of the event loop: by `setImmediate`, or by the shortest timer where that is missing or throws. */
function afterTurn(then: () => void): () => void {
  try {
    const turn = setImmediate(then);
    return () => clearImmediate(turn);
  } catch {
    return after(0, then);
  }
}

function orRelease<T>(act: () => T, iterator: AsyncIterator<Message>, pending: Promise<Result>): T {
  try {
    return act();
  } catch (error) {
    release(iterator, pending);
    throw error;
  }
}

/** Runs the finally blocks of the implementation without waiting for them: an idle implementation may never settle. */
function release(iterator: AsyncIterator<Message>, pending: Promise<Result>): void {
  pending.catch(() => undefined);
  iterator.return?.().catch(() => undefined);
}

/** Returns undefined if the format has no place for a failure, or if the encoder throws. */
function failureText<Source>(
  responses: Responses<Source>,
  exchange: Exchange<Source>,
  endpoint: Endpoint,
  format: StreamFormat,
  reason: unknown,
  first: boolean,
): string | undefined {
  try {
    return format.failure(responses.failureInBand(exchange, endpoint, reason), first);
  } catch {
    return undefined;
  }
}

async function closeWith(failure: string | undefined, format: StreamFormat, response: ResponseStream): Promise<void> {
  if (failure === undefined) return response.abort();
  await response.write(failure + format.close).then(
    () => response.end(),
    // The client has disconnected, so the resources of the response are released.
    () => response.abort(),
  );
}
