import type { JsonReadOptions, JsonWriteOptions } from "@bufbuild/protobuf";

/** JSON on every protocol: what a message has is shown even when it is empty, what it does not know is ignored. */
export const jsonOptions: Partial<JsonReadOptions & JsonWriteOptions> = {
  alwaysEmitImplicit: true,
  ignoreUnknownFields: true,
};
