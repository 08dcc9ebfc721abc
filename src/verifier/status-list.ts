/** Reads status list tokens (draft-ietf-oauth-status-list-20). This file is used in every runtime. */
import type { PublishedKey } from "./jwk.ts";
import { readBytes } from "./jwks.ts";
import type { KeySet } from "./key-set.ts";
import { parseObject } from "./strict-json.ts";
import { findKey, isSignature } from "./token-rules.ts";
import { decodeBytes, decodeText } from "./web/segment.ts";

/** Matches the media type of lists, with or without the prefix `application/`; case does not matter (section 5.1). */
const TYPE = /^(application\/)?statuslist\+jwt$/i;
const BITS: readonly unknown[] = [1, 2, 4, 8];
/** The largest decompressed list, in bytes: eight million statuses. A short text could decompress to any number of bytes. */
const MAX_LIST_BYTES = 1_048_576;
/** How long a list is used if it has no `ttl`, in ms. */
const DEFAULT_TTL_MS = 60_000;

export type StatusList = {
  readonly key: PublishedKey;
  readonly issuedAtMs: number;
  readonly expiresAtMs: number;
  readonly ttlMs: number;
  readonly statuses: Statuses;
};

type Statuses = { readonly bits: number; readonly bytes: Uint8Array };

type Expected = {
  readonly keys: Pick<KeySet<PublishedKey>, "find" | "isRevoked" | "refresh">;
  readonly issuer: string;
  readonly uri: string;
  /** The wall clock, in ms since the epoch. */
  readonly nowMs: number;
};

const encoder = new TextEncoder();

/** Returns the list in a status list token. @throws Error if it is not the expected list, or has expired */
export async function readStatusList(token: string, expected: Expected): Promise<StatusList> {
  const [header = "", payload = "", signature = "", ...rest] = token.split(".");
  const bytes = decodeBytes(signature);
  if (rest.length > 0 || bytes === undefined || !isSignature(bytes.length))
    throw new Error("the status list is not a JWT");
  const key = await keyOf(header, expected.keys);
  if (!(await key.verifies(encoder.encode(`${header}.${payload}`), bytes)))
    throw new Error("the status list is forged");
  const claims = parseObject(decodeText(payload) ?? "") ?? {};
  const { iss, sub, iat, exp = Number.POSITIVE_INFINITY, ttl, status_list } = claims;
  if (iss !== expected.issuer || sub !== expected.uri) throw new Error("the status list is another one");
  if (typeof iat !== "number" || typeof exp !== "number") throw new Error("the status list has no time");
  if (expected.nowMs >= exp * 1000) throw new Error("the status list has expired");
  const ttlMs = typeof ttl === "number" && ttl > 0 ? ttl * 1000 : DEFAULT_TTL_MS;
  return { key, issuedAtMs: iat * 1000, expiresAtMs: exp * 1000, ttlMs, statuses: await readStatuses(status_list) };
}

async function keyOf(header: string, keys: Expected["keys"]): Promise<PublishedKey> {
  const text = decodeText(header);
  const found = findKey(text, keys, TYPE);
  if (found.ok) return found.key;
  // An unknown key may be newer than the key set, so the set is read again.
  const again = found.reason === "unknown_key" && (await keys.refresh()) ? findKey(text, keys, TYPE) : found;
  if (!again.ok) throw new Error(`the status list is not signed as it must be: ${again.reason}`);
  return again.key;
}

/** Decodes the claim `status_list` (section 4.2). @throws Error */
export async function readStatuses(claim: unknown): Promise<Statuses> {
  const { bits, lst } = (claim ?? {}) as Readonly<Record<string, unknown>>;
  const compressed = typeof lst === "string" ? decodeBytes(lst) : undefined;
  if (typeof bits !== "number" || !BITS.includes(bits) || compressed === undefined)
    throw new Error("not a status list");
  const inflated = new Blob([compressed]).stream().pipeThrough(new DecompressionStream("deflate")); // ZLIB (RFC 1950)
  return { bits, bytes: sharedIfEmpty(await readBytes(inflated, MAX_LIST_BYTES, "the status list")) };
}

let empty = new Uint8Array();

/** Most lists are about old sessions, none of which has ended. Such lists share their bytes. */
function sharedIfEmpty(bytes: Uint8Array): Uint8Array {
  if (bytes.some((byte) => byte !== 0)) return bytes;
  if (empty.length !== bytes.length) empty = new Uint8Array(bytes.length);
  return empty;
}

/** Returns the status at an index; undefined if the index is out of bounds. */
export function statusAt({ bits, bytes }: Statuses, index: number): number | undefined {
  const byte = bytes[Math.floor((index * bits) / 8)];
  return byte === undefined ? undefined : (byte >> ((index * bits) % 8)) & (2 ** bits - 1);
}
