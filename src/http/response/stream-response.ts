import type { Message } from "@bufbuild/protobuf";
import type { Call } from "../call/call.ts";
import type { Endpoint } from "../call/endpoints.ts";
import type { Exchange, ResponseStream } from "../call/exchange.ts";
import { checkLength, type Responses } from "./responses.ts";
import { RAW_BYTES, type StreamFormat, streamFormatFor } from "./stream-format.ts";

/**
 * Sends a stream of messages. A failure before the first message is an ordinary response; a later one is sent in band.
 */
export async function sendStream<Source>(
  responses: Responses<Source>,
  exchange: Exchange<Source>,
  endpoint: Endpoint,
  call: Call,
  messages: AsyncIterable<Message>,
): Promise<void> {
  const iterator = messages[Symbol.asyncIterator]();
  const first = await iterator.next();
  const payload = first.done ? undefined : endpoint.response(first.value);
  const format = endpoint.raw ? RAW_BYTES : streamFormatFor(exchange.headers.get("accept"));
  const header = call.responseHeader;
  const contentType = format.contentType ?? payload?.contentType ?? "application/octet-stream";
  if (!header.has("content-type")) header.set("content-type", contentType);
  if (!header.has("cache-control")) header.set("cache-control", "no-cache");
  header.append("vary", "Accept");
  const [status, lines] = responses.head(exchange, endpoint, call);
  if (exchange.method === "HEAD") {
    exchange.send(status, lines, undefined);
    call.end();
    await iterator.return?.();
    return;
  }
  const response = exchange.stream(status, lines);
  const stop = exchange.onAbort((reason) => call.end(reason));
  let started = false;
  try {
    if (format.open !== "") await response.write(format.open);
    for (let next = first; !next.done; next = await iterator.next()) {
      const chunk = format.chunk(endpoint.response(next.value), !started);
      checkLength(chunk, endpoint.rpc.options.writeMaxBytes);
      await response.write(chunk);
      started = true;
    }
    if (format.close !== "") await response.write(format.close);
    response.end();
    call.end();
  } catch (reason) {
    call.end(reason);
    await closeWith(format.failure(responses.failureInBand(endpoint, reason), !started), format, response);
    // Run the finally blocks of the implementation.
    await iterator.return?.().catch(() => undefined);
  } finally {
    stop();
  }
}

async function closeWith(failure: string | undefined, format: StreamFormat, response: ResponseStream): Promise<void> {
  if (failure === undefined) return response.abort();
  await response.write(failure + format.close).then(
    () => response.end(),
    // The client has disconnected.
    () => undefined,
  );
}
