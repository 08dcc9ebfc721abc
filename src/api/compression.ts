import { compressionGzip } from "@connectrpc/connect-node";

/**
 * From how many bytes on answers are compressed, on every protocol: never. Tokens hardly get shorter, each would take four times
 * as long to answer, and the size of what is compressed together with a secret can tell of it (BREACH).
 */
export const compressMinBytes = Number.POSITIVE_INFINITY;

/** How a message may be compressed that we read. Without brotli: its window takes up to 16 MiB for each message. */
export const acceptCompression = [compressionGzip];
