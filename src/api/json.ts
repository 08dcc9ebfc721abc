import type { JsonReadOptions, JsonWriteOptions } from "@bufbuild/protobuf";

/**
 * The JSON options of every protocol: empty fields are written, unknown fields are ignored.
 * Connect decodes bodies with `textDecoder`. Its default would turn bytes that are not UTF-8 into U+FFFD, so that two subjects could
 * become one.
 */
export const jsonOptions: Partial<JsonReadOptions & JsonWriteOptions> & { readonly textDecoder: TextDecoder } = {
  alwaysEmitImplicit: true,
  ignoreUnknownFields: true,
  textDecoder: new TextDecoder("utf-8", { fatal: true }),
};
