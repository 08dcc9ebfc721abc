import type { HeaderMap } from "./header-map.ts";

/** The prefix of metadata in HTTP headers, as grpc-gateway has it (`grpcMetadata`). */
export const METADATA_PREFIX = "grpc-metadata-";

/** Adds the prefix to the headers that a handler has set, except those that describe the content. */
export function prefixMetadata(headers: HeaderMap): void {
  for (const [name, value] of [...headers]) {
    if (name === "etag" || name.startsWith("content-")) continue;
    headers.delete(name);
    headers.append(METADATA_PREFIX + name, value);
  }
}
