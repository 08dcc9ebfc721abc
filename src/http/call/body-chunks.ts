/** The bytes of a request body, pulled chunk by chunk: what is not pulled stays with the sender. */
export interface BodyChunks {
  /** The next bytes; undefined at the end. Rejects if the client disconnects, or with the reason of `cancel`. */
  next(): Promise<Uint8Array | undefined>;
  /** Stops reading: a pending `next` rejects with the reason. */
  cancel(reason: unknown): void;
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
