/**
 * Writes into a response without the framework that writes its head, its first message and its end. Frameworks pass each message of a
 * stream through a chain of async iterables. For a message to thousands of streams, that costs several times as much as the writing.
 */
import type { ServerResponse } from "node:http";
import type { Http2ServerResponse } from "node:http2";
import type { Writable } from "node:stream";
import type { HttpRequest, HttpResponse } from "./handler.ts";

export type Output = {
  /**
   * Writes bytes of the body. If the response has ended, nothing happens.
   *
   * @param bytes several responses may share them, so that their encoding is made once; nobody may change them
   * @returns false if the client must read first (`drained`)
   */
  write(bytes: Uint8Array): boolean;
  /** Resolves when the client has read enough, or the response has ended. */
  drained(): Promise<void>;
};

const outputs = new WeakMap<HttpRequest, Output>();

export function keepOutput(request: HttpRequest, response: HttpResponse): void {
  outputs.set(request, "stream" in response ? toStream(response) : toSocket(response));
}

export function outputOf(request: HttpRequest): Output | undefined {
  return outputs.get(request);
}

function toStream(response: Http2ServerResponse): Output {
  const { stream } = response;
  return {
    write: (bytes) => response.writableEnded || stream.destroyed || stream.write(bytes, ignoreFailure),
    drained: () => drainOf([stream]),
  };
}

/** The callback of writes. It ignores a failure, because a failed write also destroys the response, and that ends the stream. */
const ignoreFailure = () => {};

/** Writes chunks of HTTP/1.1 into the connection itself: a response makes several buffers of each, for each client anew. */
function toSocket(response: ServerResponse): Output {
  return {
    write(bytes) {
      const { socket } = response;
      if (response.writableEnded || response.destroyed) return true;
      // A response has no connection while an earlier one on it has not ended. What it keeps, in the same turn or until then, comes first.
      if (socket === null || !response.headersSent || response.writableLength > 0) {
        return response.write(bytes, ignoreFailure);
      }
      return socket.write(response.chunkedEncoding ? chunkOf(bytes) : bytes);
    },
    drained: () => drainOf(response.socket === null ? [response] : [response, response.socket]),
  };
}

const chunks = new WeakMap<Uint8Array, Buffer>();

/** Returns bytes as a chunk (RFC 9112 section 7.1). */
function chunkOf(bytes: Uint8Array): Buffer {
  let chunk = chunks.get(bytes);
  if (chunk === undefined) {
    chunk = Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from("\r\n")]);
    chunks.set(bytes, chunk);
  }
  return chunk;
}

/** Resolves when one of the streams has been drained or closed. */
function drainOf(streams: readonly Writable[]): Promise<void> {
  return new Promise((resolve) => {
    const settle = () => {
      for (const stream of streams) stream.off("drain", settle).off("close", settle);
      resolve();
    };
    for (const stream of streams) stream.once("drain", settle).once("close", settle);
  });
}
