import type { Readable } from "node:stream";
import type { BodyChunks } from "../call/body-chunks.ts";

/** Pulls a Node stream without destroying it, so that a response can still be sent on the same connection. */
export class ReadableChunks implements BodyChunks {
  readonly #source: Readable;
  readonly #onIncomplete: (error: unknown) => unknown;
  #wake: (() => void) | undefined;
  readonly #onReadable = () => this.#wake?.();
  #closed = false;
  #error: { readonly reason: unknown } | undefined;

  /** @param onIncomplete converts the error of a stream that was cut before its end */
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
    // The stream is not destroyed: its owner may still read the rest.
    this.#source.off("readable", this.#onReadable);
    this.#fail(reason);
  }

  #fail(reason: unknown): void {
    this.#error ??= { reason };
    this.#wake?.();
  }
}
