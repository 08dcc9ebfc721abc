import type { HttpRequest, HttpResponse } from "../platform/listener/handler.ts";

/** How many bytes the bodies of a request and of its response have so far. */
interface BodyBytes {
  request: number;
  response: number;
}

/**
 * Counts the bytes of the two bodies as they are sent: compressed, and without heads, lengths of chunks and headers of frames, as
 * OpenTelemetry defines `http.server.request.body.size`. Node counts bytes only for a whole connection, so this function replaces the
 * methods through which all bytes of a body pass.
 */
export function countBodyBytes(request: HttpRequest, response: HttpResponse): BodyBytes {
  // A pipelined request waits for the response before it, and its body may arrive meanwhile.
  const bytes = { request: request.readableLength, response: 0 };
  observe(request, "push", (chunk) => {
    bytes.request += lengthOf(chunk);
  });
  const onChunk = (chunk: unknown, encoding: unknown) => {
    bytes.response += lengthOf(chunk, encoding);
  };
  observe(response, "write", onChunk);
  // In HTTP/2, `end` calls `write`.
  if (!("stream" in response)) observe(response, "end", onChunk);
  return bytes;
}

/** Calls `note` before each call of a method, with its first two arguments. */
function observe<Name extends string>(
  target: { readonly [name in Name]: (...given: never[]) => unknown },
  name: Name,
  note: (chunk: unknown, encoding: unknown) => void,
): void {
  const method = target[name];
  const value = function (this: unknown, ...given: unknown[]): unknown {
    note(given[0], given[1]);
    return Reflect.apply(method, this, given);
  };
  Object.defineProperty(target, name, { value, configurable: true, writable: true });
}

function lengthOf(chunk: unknown, encoding?: unknown): number {
  if (chunk instanceof Uint8Array) return chunk.byteLength;
  if (typeof chunk !== "string") return 0;
  return Buffer.byteLength(chunk, typeof encoding === "string" && Buffer.isEncoding(encoding) ? encoding : "utf8");
}
