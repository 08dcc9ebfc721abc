import type { Readable } from "node:stream";

/** The bytes of a request body, pulled chunk by chunk: what is not pulled stays with the sender. */
export interface BodyChunks {
  /** The next bytes; undefined at the end. Rejects if the client disconnects, or with the reason of `cancel`. */
  next(): Promise<Uint8Array | undefined>;
  /** Stops reading: a pending `next` rejects with the reason. */
  cancel(reason: unknown): void;
}

/** Pulls a node stream without destroying it, so that a response can still be sent on the same connection. */
export class ReadableChunks implements BodyChunks {
  readonly #source: Readable;
  readonly #onIncomplete: (error: unknown) => unknown;
  #wake: (() => void) | undefined;
  readonly #onReadable = () => this.#wake?.();
  #closed = false;
  #error: { readonly reason: unknown } | undefined;

  /** @param onIncomplete converts the error of a stream that ends before its end */
  constructor(source: Readable, onIncomplete: (error: unknown) => unknown) {
    this.#source = source;
    this.#onIncomplete = onIncomplete;
    source.on("readable", this.#onReadable);
    source.on("end", this.#onReadable);
    source.on("error", (error) => this.#fail(onIncomplete(error)));
    source.on("close", () => {
      this.#closed = true;
      this.#wake?.();
    });
  }

  async next(): Promise<Uint8Array | undefined> {
    for (;;) {
      if (this.#error !== undefined) throw this.#error.reason;
      const chunk = this.#source.read() as Uint8Array | null;
      if (chunk !== null) return chunk;
      if (this.#source.readableEnded) return undefined;
      if (this.#closed) throw this.#onIncomplete(undefined);
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  cancel(reason: unknown): void {
    // Others may want to read the rest.
    this.#source.off("readable", this.#onReadable);
    this.#fail(reason);
  }

  #fail(reason: unknown): void {
    this.#error ??= { reason };
    this.#wake?.();
  }
}

/** A body that has been read before. */
export function chunksOf(bytes: Uint8Array): BodyChunks {
  let rest: Uint8Array | undefined = bytes;
  return {
    async next() {
      const chunk = rest;
      rest = undefined;
      return chunk?.byteLength === 0 ? undefined : chunk;
    },
    cancel() {
      rest = undefined;
    },
  };
}

/** @param onChunk called with each, before it is yielded */
export async function* iterateChunks(
  chunks: BodyChunks,
  onChunk: (chunk: Uint8Array) => void,
): AsyncGenerator<Uint8Array> {
  for (let chunk = await chunks.next(); chunk !== undefined; chunk = await chunks.next()) {
    onChunk(chunk);
    yield chunk;
  }
}
