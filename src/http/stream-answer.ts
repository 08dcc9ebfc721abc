import type { Message } from "@bufbuild/protobuf";
import { type Answers, checkLength } from "./answers.ts";
import type { Call } from "./call.ts";
import type { Endpoint } from "./endpoints.ts";
import type { Exchange, ResponseStream } from "./exchange.ts";
import { bytesForm, type StreamForm, streamFormFor } from "./stream-form.ts";

/**
 * Answers with a stream of messages. Until the first one is there, so that the implementation can still set headers, a
 * failure is an ordinary answer; from then on it is in band.
 */
export async function answerWithStream<Source>(
  answers: Answers<Source>,
  exchange: Exchange<Source>,
  endpoint: Endpoint,
  call: Call,
  messages: AsyncIterable<Message>,
): Promise<void> {
  const iterator = messages[Symbol.asyncIterator]();
  const first = await iterator.next();
  const payload = first.done ? undefined : endpoint.response(first.value);
  const form = endpoint.raw ? bytesForm : streamFormFor(exchange.headers.get("accept"));
  const header = call.responseHeader;
  const contentType = form.contentType ?? payload?.contentType ?? "application/octet-stream";
  if (!header.has("content-type")) header.set("content-type", contentType);
  if (!header.has("cache-control")) header.set("cache-control", "no-cache");
  header.append("vary", "Accept");
  const [status, lines] = answers.head(exchange, endpoint, call);
  if (exchange.method === "HEAD") {
    exchange.send(status, lines, undefined);
    call.end();
    await iterator.return?.();
    return;
  }
  const response = exchange.stream(status, lines);
  const stop = exchange.onAbort((reason) => call.end(reason));
  let begun = false;
  try {
    if (form.open !== "") await response.write(form.open);
    for (let next = first; !next.done; next = await iterator.next()) {
      const piece = form.piece(endpoint.response(next.value), !begun);
      checkLength(piece, endpoint.rpc.options.writeMaxBytes);
      await response.write(piece);
      begun = true;
    }
    if (form.close !== "") await response.write(form.close);
    response.end();
    call.end();
  } catch (reason) {
    call.end(reason);
    await closeWith(form.failure(answers.failureInBand(endpoint, reason), !begun), form, response);
    // Whatever the implementation still holds, its finally blocks let go of it.
    await iterator.return?.().catch(() => undefined);
  } finally {
    stop();
  }
}

async function closeWith(failure: string | undefined, form: StreamForm, response: ResponseStream): Promise<void> {
  if (failure === undefined) return response.cut();
  await response.write(failure + form.close).then(
    () => response.end(),
    // Nobody is there to read it.
    () => undefined,
  );
}
