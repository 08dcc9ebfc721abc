/** Reads key sets (RFC 7517 section 5). Their size and their number of keys are limited, because the source is not trusted. */

import { parseObject } from "../../platform/jws/strict-json.ts";
import type { ImportKey, PublishedKey } from "./jwk.ts";

const MAX_BYTES = 256 * 1024;
/** How many keys a set may have, which is enough for many rotations. */
const MAX_KEYS = 100;

/** How long a key set is used, in ms, if its response does not specify that, and the limits for what a response specifies. */
const DEFAULT_MAX_AGE_MS = 60_000;
export const MIN_MAX_AGE_MS = 1000;
const MAX_MAX_AGE_MS = 300_000;

/** Returns the keys of a response that verify access tokens. @throws Error if there are none, or if it is no key set within the limits */
export async function readKeys<Key extends PublishedKey>(
  response: Response,
  importKey: ImportKey<Key>,
): Promise<readonly Key[]> {
  if (!response.ok) throw new Error(`the key set responds ${response.status}`);
  const list = parseObject(await readText(response))?.keys;
  if (!Array.isArray(list) || list.length > MAX_KEYS) throw new Error("not a key set");
  const keys = (await Promise.all(list.map(importKey))).filter((key) => key !== undefined);
  if (keys.length === 0) throw new Error("the key set has no key that verifies access tokens");
  return keys;
}

/** Returns the body of a response. @throws Error if it is too long or is not UTF-8 */
async function readText(response: Response): Promise<string> {
  const reader = (response.body ?? new Blob().stream()).getReader();
  const chunks: Uint8Array<ArrayBuffer>[] = [];
  let length = 0;
  for (let next = await reader.read(); !next.done; next = await reader.read()) {
    length += next.value.length;
    if (length > MAX_BYTES) {
      await reader.cancel();
      throw new Error("the key set is too large");
    }
    chunks.push(next.value);
  }
  const bytes = new Uint8Array(await new Blob(chunks).arrayBuffer());
  return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
}

/** Returns `max-age` of `Cache-Control` (RFC 9111 section 5.2.2.1) in ms, within limits. */
export function readMaxAgeMs({ headers }: Response): number {
  const seconds = /(?:^|[\s,])max-age="?(\d{1,9})/i.exec(headers.get("cache-control") ?? "")?.[1];
  const maxAgeMs = seconds === undefined ? DEFAULT_MAX_AGE_MS : Number(seconds) * 1000;
  return Math.min(Math.max(maxAgeMs, MIN_MAX_AGE_MS), MAX_MAX_AGE_MS);
}
