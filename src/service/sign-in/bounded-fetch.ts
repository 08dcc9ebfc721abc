import type { CustomFetchOptions } from "openid-client";
import { isSafeUrl } from "../config/providers.ts";

/** The size limit of a provider's response, in bytes. A key set or the claims of a user take some kilobytes. */
const MAX_BYTES = 262_144;

/** A provider on this machine names a URL of another machine by http, where everybody in between could read and change what is sent. */
export class UnsafeUrl extends Error {
  override readonly name = "unsafe_url";
}

/**
 * Fetches like `fetch`, but rejects responses that are larger than the limit. Redirects are followed as the options say.
 * @throws UnsafeUrl
 */
export async function boundedFetch(url: string, { body, signal, ...options }: CustomFetchOptions): Promise<Response> {
  if (!isSafeUrl(url)) throw new UnsafeUrl();
  const response = await fetch(url, { ...options, body: body ?? null, signal: signal ?? null });
  if (response.body === null) return response;
  const chunks: Uint8Array<ArrayBuffer>[] = [];
  let length = 0;
  for await (const chunk of response.body) {
    length += chunk.length;
    if (length > MAX_BYTES) throw new TypeError("the response is too large");
    chunks.push(chunk);
  }
  const { status, statusText, headers } = response;
  // The body is decoded already.
  const kept = new Headers(headers);
  kept.delete("content-encoding");
  kept.delete("content-length");
  return new Response(await new Blob(chunks).arrayBuffer(), { status, statusText, headers: kept });
}
