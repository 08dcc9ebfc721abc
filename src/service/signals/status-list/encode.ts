import { constants, deflateSync } from "node:zlib";
import { LIST_SIZE } from "./place.ts";

const EVERY_BIT = 0xff;

/** A list consists of runs of zeros between random bits. Other strategies of zlib hardly compress it better, at 100 times the time. */
const COMPRESSION = { level: 9, strategy: constants.Z_RLE };

/** Encodes a byte array as `lst`: ZLIB, in base64url (draft-ietf-oauth-status-list section 4.1). */
export function encodeList(bytes: Uint8Array): string {
  return deflateSync(bytes, COMPRESSION).toString("base64url");
}

/** Returns the byte array in which the bits of these indices are set, the least significant bit first. */
export function setBits(indices: Iterable<number>): Uint8Array {
  const bytes = new Uint8Array(LIST_SIZE / 8);
  for (const index of indices) bytes[index >> 3] = (bytes[index >> 3] ?? 0) | (1 << (index & 7));
  return bytes;
}

/** Two encoded lists: one in which no session is revoked, and one in which every session is. */
export const NONE_REVOKED = encodeList(setBits([]));
export const ALL_REVOKED = encodeList(setBits([]).fill(EVERY_BIT));
