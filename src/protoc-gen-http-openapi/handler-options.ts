/** The options of the handler that serves the routes, as far as the document depends on them. */
import type { JsonWriteOptions } from "@bufbuild/protobuf";
import type { EntityTags, MultiSegmentDecoding } from "connect-http-routes/descriptors";
import { loadObject } from "./overlay.ts";

export interface HandlerOptions {
  readonly jsonOptions?: Partial<JsonWriteOptions> | undefined;
  readonly failureEncoder?: { readonly contentType?: string } | undefined;
  readonly codecs?: Iterable<{ readonly mediaTypes: readonly string[] }> | undefined;
  readonly formPosts?: boolean | undefined;
  readonly multipart?: boolean | undefined;
  readonly requestPathPrefix?: string | undefined;
  readonly multiSegmentDecoding?: MultiSegmentDecoding | undefined;
  readonly entityTags?: EntityTags | undefined;
}

const KNOWN: readonly (keyof HandlerOptions)[] = [
  "jsonOptions",
  "failureEncoder",
  "codecs",
  "formPosts",
  "multipart",
  "requestPathPrefix",
  "multiSegmentDecoding",
  "entityTags",
];

/** Reads the options from a JSON file, or from the exports of a module that the handler imports too: so they cannot differ. */
export function loadHandlerOptions(path: string): HandlerOptions {
  const options: HandlerOptions = loadObject(path);
  if (!KNOWN.some((name) => name in options)) {
    throw new Error(`${path}: has none of the options that a document depends on (${KNOWN.join(", ")})`);
  }
  return options;
}
