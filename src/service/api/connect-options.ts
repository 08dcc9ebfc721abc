import type { JsonReadOptions, JsonWriteOptions } from "@bufbuild/protobuf";
import type { ConnectRouterOptions } from "@connectrpc/connect";
import { compressionGzip } from "@connectrpc/connect-node";

/**
 * The JSON options of every protocol. Connect decodes bodies with `textDecoder`, whose default would turn all bytes that are not UTF-8 into
 * U+FFFD, so that two subjects could become one.
 */
export const jsonOptions: Partial<JsonReadOptions & JsonWriteOptions> & { readonly textDecoder: TextDecoder } = {
  alwaysEmitImplicit: true,
  ignoreUnknownFields: true,
  textDecoder: new TextDecoder("utf-8", { fatal: true }),
};

/**
 * The options of services whose requests may have no unknown fields: a misspelt option of an operator must not be ignored. The public API
 * ignores unknown fields, and so do the endpoints of OAuth and SSF, whose standards want that.
 */
export const STRICT_JSON: ConnectRouterOptions = { jsonOptions: { ...jsonOptions, ignoreUnknownFields: false } };

/** Responses are never compressed: they carry secrets (BREACH), and tokens do not shrink. */
export const compressMinBytes = Number.POSITIVE_INFINITY;

/** The compressions of requests that are accepted. Brotli is left out: its window takes up to 16 MiB for each message. */
export const acceptCompression = [compressionGzip];
