/** Reads streamed responses. */
import type { JsonValue } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";

/** An event of a stream of server-sent events: a message, or the failure that ends the stream. */
interface StreamEvent {
  readonly failed: boolean;
  readonly json: JsonValue;
}

/** Yields the pieces of a body as they arrive. Cancels the response if the consumer stops. */
export async function* piecesOf(body: ReadableStream<Uint8Array> | null): AsyncGenerator<Uint8Array> {
  const reader = body?.getReader();
  if (reader === undefined) return;
  try {
    for (let piece = await reader.read(); !piece.done; piece = await reader.read()) yield piece.value;
  } finally {
    reader.cancel().catch(() => undefined);
  }
}

/** Parses server-sent events (WHATWG HTML section 9.2) as the server writes them: `\n` ends a line, comments are skipped. */
export async function* eventsOf(body: ReadableStream<Uint8Array> | null): AsyncGenerator<StreamEvent> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const piece of piecesOf(body)) {
    rest += decoder.decode(piece, { stream: true });
    let end = rest.indexOf("\n\n");
    let start = 0;
    for (; end !== -1; end = rest.indexOf("\n\n", start)) {
      const event = parseEvent(rest.slice(start, end));
      start = end + 2;
      if (event !== undefined) yield event;
    }
    rest = rest.slice(start);
  }
  if (rest !== "") throw new ConnectError("the stream is incomplete", Code.DataLoss);
}

function parseEvent(text: string): StreamEvent | undefined {
  let data: string | undefined;
  let failed = false;
  for (const line of text.split("\n")) {
    if (line.startsWith("data:")) data = line.slice(5);
    else if (line === "event: error") failed = true;
  }
  return data === undefined ? undefined : { failed, json: JSON.parse(data) as JsonValue };
}
