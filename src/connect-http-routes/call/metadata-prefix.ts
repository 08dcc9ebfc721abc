import type { HeaderMap } from "./header-map.ts";

/** The prefix of metadata in HTTP headers, as grpc-gateway has it (`grpcMetadata`). */
export const METADATA_PREFIX = "grpc-metadata-";

/** Gives the headers of a handler the prefix, but for those of the content. */
export function prefixMetadata(headers: HeaderMap): void {
  for (const [name, value] of [...headers]) {
    if (name === "etag" || name.startsWith("content-")) continue;
    headers.delete(name);
    headers.append(METADATA_PREFIX + name, value);
  }
}
