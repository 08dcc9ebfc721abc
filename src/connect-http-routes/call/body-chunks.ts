/** The bytes of a request body, pulled chunk by chunk. Bytes that are not pulled stay with the sender. */
export interface BodyChunks {
  /** Returns the next bytes; undefined at the end. Rejects if the client disconnects, or with the reason of `cancel`. */
  next(): Promise<Uint8Array | undefined>;
  /** Stops reading: a pending `next` rejects with the reason. */
  cancel(reason: unknown): void;
}

/** Wraps a body that has already been read. */
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
