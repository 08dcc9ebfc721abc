import { compressionGzip } from "@connectrpc/connect-node";

/** Responses are never compressed: they carry secrets (BREACH), and tokens do not shrink. */
export const compressMinBytes = Number.POSITIVE_INFINITY;

/** The compressions of requests that are accepted. Brotli is left out: its window takes up to 16 MiB for each message. */
export const acceptCompression = [compressionGzip];
