import type { JsonReadOptions, JsonWriteOptions } from "@bufbuild/protobuf";

/**
 * JSON on every protocol: empty fields are written, unknown fields are ignored. Connect decodes
 * bodies with `textDecoder`: its own would turn bytes that are not UTF-8 into U+FFFD, and two subjects into one.
 */
export const jsonOptions: Partial<JsonReadOptions & JsonWriteOptions> & { readonly textDecoder: TextDecoder } = {
  alwaysEmitImplicit: true,
  ignoreUnknownFields: true,
  textDecoder: new TextDecoder("utf-8", { fatal: true }),
};
