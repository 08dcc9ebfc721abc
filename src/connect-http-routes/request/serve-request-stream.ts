import type { Message } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { callClientStreaming, callStreaming } from "../call/invoke.ts";
import type { Responses } from "../response/responses.ts";
import { sendStream } from "../response/stream-response.ts";
import type { RequestStream } from "./read-request-stream.ts";
import type { Serving } from "./serving.ts";

/** Serves an RPC whose request is a stream. @throws the error of the request, if reading it has failed; otherwise that of the call */
export async function serveRequestStream<Source>(
  responses: Responses<Source>,
  { exchange, endpoint, call }: Serving<Source>,
  requestStream: RequestStream,
): Promise<void> {
  const { rpc } = endpoint;
  try {
    if (rpc.spec.kind === "bidi_streaming") {
      if (!exchange.fullDuplex) throw new ConnectError("bidirectional streaming needs HTTP/2", Code.Unimplemented);
      const messages = await callStreaming(rpc, call, requestStream.messages);
      await sendStream(responses, exchange, endpoint, call, preferFailure(messages, requestStream));
    } else {
      const output = await callClientStreaming(rpc, call, requestStream.messages);
      requestStream.close();
      await responses.succeed(exchange, endpoint, call, output);
      call.end();
    }
  } catch (error) {
    const reason = requestStream.failure()?.reason ?? error;
    // The call ends before its request is closed, so that the implementation does not take a failure for the end of the messages.
    call.end(reason);
    throw reason;
  } finally {
    requestStream.close();
  }
}

/** Yields the messages of a response. If reading the request has failed too, throws the error of the request, which is the likely cause. */
async function* preferFailure(messages: AsyncIterable<Message>, requestStream: RequestStream): AsyncGenerator<Message> {
  try {
    yield* messages;
  } catch (error) {
    throw requestStream.failure()?.reason ?? error;
  }
}
