import { toUtf8 } from "../codec/bytes.ts";
import type { ChosenCodec, Codecs } from "../codec/content-codec.ts";
import type { Payload } from "../codec/response-codec.ts";
import { sizeDelimited } from "../codec/size-delimited.ts";
import { isAnyType, JSON_LINES, weighted } from "./negotiation.ts";

/** The framing of a stream of messages. */
export interface StreamFormat {
  /** The codec of the messages. Default: JSON. */
  readonly chosen?: ChosenCodec;
  /** The Content-Type of the response; undefined: that of the first message. */
  readonly contentType: string | undefined;
  readonly open: string;
  chunk(payload: Payload, first: boolean): string | Uint8Array;
  /** Encodes a failure in mid-stream, as the last chunk. Undefined if the format cannot express one; the response is then aborted. */
  failure(json: string, first: boolean): string | undefined;
  /** A text without meaning that keeps idle streams open. */
  readonly heartbeat?: string;
  readonly close: string;
}

/** Writes one message per line (ndjson.org). A failure is the last line. */
export const NDJSON: StreamFormat = {
  contentType: "application/x-ndjson",
  open: "",
  chunk: ({ content }) => `${content}\n`,
  failure: (json) => `${json}\n`,
  heartbeat: "\n",
  close: "",
};

/** Writes server-sent events (WHATWG HTML section 9.2). A failure is an event of type `error`. */
const SERVER_SENT_EVENTS: StreamFormat = {
  contentType: "text/event-stream",
  open: "",
  chunk: ({ content }) => `data: ${content}\n\n`,
  failure: (json) => `event: error\ndata: ${json}\n\n`,
  heartbeat: ":\n\n",
  close: "",
};

/** Writes one JSON array. A failure is its last element. */
const JSON_ARRAY: StreamFormat = {
  contentType: "application/json",
  open: "[",
  chunk: ({ content }, first) => `${first ? "" : ","}${content}`,
  failure: (json, first) => `${first ? "" : ","}${json}`,
  close: "]",
};

/** Writes the concatenated bytes of HttpBody messages. */
export const RAW_BYTES: StreamFormat = {
  contentType: undefined,
  open: "",
  chunk: ({ content }) => content,
  failure: () => undefined,
  close: "",
};

const FORMATS: ReadonlyMap<string, StreamFormat> = new Map([
  ...JSON_LINES.map((name) => [name, NDJSON] as const),
  ["text/event-stream", SERVER_SENT_EVENTS],
  ["application/json", JSON_ARRAY],
]);

/** Wraps each message, as grpc-gateway does: a failure is `{"error": …}` in both forms. */
export function withResults(format: StreamFormat): StreamFormat {
  const wrap = ({ contentType, content }: Payload): Payload => ({ contentType, content: `{"result":${content}}` });
  return { ...format, chunk: (payload, first) => format.chunk(wrap(payload), first) };
}

/** Writes size-delimited messages. A failure cannot be distinguished from a message, so the response is aborted. */
function delimited(chosen: ChosenCodec): StreamFormat {
  return {
    chosen,
    contentType: `${chosen.mediaType}; delimited=true`,
    open: "",
    chunk: ({ content }) => sizeDelimited(typeof content === "string" ? toUtf8(content) : content),
    failure: () => undefined,
    close: "",
  };
}

/**
 * Chooses the format that an Accept header prefers; NDJSON if the header names no supported format.
 * @param codecs codecs of messages can be chosen, too
 * @param ofRequest the codec of the request, used if the header accepts any type
 */
export function streamFormatFor(accept: string | null, codecs?: Codecs, ofRequest?: ChosenCodec): StreamFormat {
  const same = ofRequest?.codec.kind === "message" ? delimited(ofRequest) : undefined;
  let best: StreamFormat = (accept === null ? same : undefined) ?? NDJSON;
  let bestWeight = 0;
  for (const { name, weight } of weighted(accept ?? "")) {
    const chosen = codecs?.get(name);
    const named = chosen?.codec.kind === "message" ? delimited(chosen) : FORMATS.get(name);
    const format = isAnyType(name) ? same : named;
    if (format === undefined || weight <= bestWeight) continue;
    best = format;
    bestWeight = weight;
  }
  return best;
}
