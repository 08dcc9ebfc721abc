import type { JsonValue } from "@bufbuild/protobuf";
import { weighted } from "./negotiation.ts";
import type { Payload } from "./response-codec.ts";

/** How the messages of a stream follow each other in a response. */
export interface StreamForm {
  /** Of the whole; undefined: that of the first message. */
  readonly contentType: string | undefined;
  readonly open: string;
  piece(payload: Payload, first: boolean): string | Uint8Array;
  /** A failure after the first message, as the last piece. undefined: there is no room for one, the response is cut. */
  failure(body: JsonValue, first: boolean): string | undefined;
  readonly close: string;
}

/** One message a line (ndjson.org). A failure is the last line. */
const lines: StreamForm = {
  contentType: "application/x-ndjson",
  open: "",
  piece: ({ content }) => `${content}\n`,
  failure: (body) => `${JSON.stringify(body)}\n`,
  close: "",
};

/** Server-sent events (WHATWG HTML section 9.2): JSON has no line breaks. A failure is an event of the type `error`. */
const events: StreamForm = {
  contentType: "text/event-stream",
  open: "",
  piece: ({ content }) => `data: ${content}\n\n`,
  failure: (body) => `event: error\ndata: ${JSON.stringify(body)}\n\n`,
  close: "",
};

/** One JSON array. A failure is its last element. */
const array: StreamForm = {
  contentType: "application/json",
  open: "[",
  piece: ({ content }, first) => `${first ? "" : ","}${content}`,
  failure: (body, first) => `${first ? "" : ","}${JSON.stringify(body)}`,
  close: "]",
};

/** The bytes of HttpBody messages one after another. */
export const bytesForm: StreamForm = {
  contentType: undefined,
  open: "",
  piece: ({ content }) => content,
  failure: () => undefined,
  close: "",
};

const forms: ReadonlyMap<string, StreamForm> = new Map([
  ["application/x-ndjson", lines],
  ["application/ndjson", lines],
  ["application/jsonl", lines],
  ["text/event-stream", events],
  ["application/json", array],
]);

/** The form that an Accept header likes best; lines where it likes none or all. */
export function streamFormFor(accept: string | null): StreamForm {
  let best: StreamForm = lines;
  let bestWeight = 0;
  for (const { name, weight } of weighted(accept ?? "")) {
    const form = forms.get(name);
    if (form === undefined || weight <= bestWeight) continue;
    best = form;
    bestWeight = weight;
  }
  return best;
}
