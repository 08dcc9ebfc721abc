/**
 * The optional parts of a session's record (record.ts), between its texts and its claims: blocks, in ascending order of their first bytes.
 * Scripts find and replace them (`block_at` of lua/lib/blocks.lua). A session without a block takes no byte for it.
 *
 * A block that this version does not know is skipped: its first byte is followed by its length (2 bytes). The first byte is less than `{`,
 * with which claims begin.
 */
import type { Authentication, LastSeen, NewSession, Session } from "../../../session/model.ts";
import { wallMs } from "../../../session/time.ts";

/** Time (6 bytes), length (2 bytes), JSON. */
const AUTHENTICATION = 1;
/** The fields that have no other form: length (2 bytes), JSON. */
const FACTS = 2;
/** The version of the session and the version below which access tokens are stale, 4 bytes each. */
const VERSION = 3;
const VERSION_BYTES = 9;
/** Length (2 bytes), JSON. lua/rotate.lua makes this block from the JSON. */
const LAST_SEEN = 4;

/** The first byte of claims. */
export const CLAIMS_START = 0x7b;

export function encodeAuthentication({ time, methods, contextClass }: Authentication): Buffer {
  const head = Buffer.alloc(7);
  head.writeUInt8(AUTHENTICATION, 0);
  head.writeUIntBE(time, 1, 6);
  return Buffer.concat([head, lengthAndJson([contextClass, ...methods])]);
}

export function encodeFacts(facts: Partial<NewSession>): Buffer {
  return Object.keys(facts).length === 0 ? Buffer.alloc(0) : Buffer.concat([Buffer.of(FACTS), lengthAndJson(facts)]);
}

export function lastSeenText({ userAgent, ipAddress }: LastSeen): string {
  return JSON.stringify([userAgent, ipAddress]);
}

function lengthAndJson(value: unknown): Buffer {
  const text = Buffer.from(JSON.stringify(value));
  return Buffer.concat([Buffer.of(text.length >> 8, text.length & 255), text]);
}

/** Decodes the blocks that begin at `at` and end before the claims or at `end`. */
export function decodeBlocks(
  bytes: Buffer,
  at: number,
  end: number,
): { readonly blocks: Partial<Session>; readonly claimsAt: number } {
  let blocks: Partial<Session> = {};
  let from = at;
  while (from < end && bytes[from] !== CLAIMS_START) {
    const kind = bytes[from];
    if (kind === VERSION) {
      const [version, staleBelow] = [bytes.readUInt32BE(from + 1), bytes.readUInt32BE(from + 5)];
      blocks = { ...blocks, version, ...(staleBelow > 0 && { staleBelow }) };
      from += VERSION_BYTES;
      continue;
    }
    const textAt = from + (kind === AUTHENTICATION ? 9 : 3);
    const textEnd = textAt + bytes.readUInt16BE(textAt - 2);
    const text = bytes.toString("utf8", textAt, textEnd);
    if (kind === AUTHENTICATION) {
      const [contextClass = "", ...methods]: string[] = JSON.parse(text);
      blocks = { ...blocks, authentication: { time: wallMs(bytes.readUIntBE(from + 1, 6)), methods, contextClass } };
    } else if (kind === FACTS) {
      blocks = { ...blocks, ...(JSON.parse(text) as Partial<NewSession>) };
    } else if (kind === LAST_SEEN) {
      const [userAgent = "", ipAddress = ""]: string[] = JSON.parse(text);
      blocks = { ...blocks, lastSeen: { userAgent, ipAddress } };
    }
    from = textEnd;
  }
  return { blocks, claimsAt: from };
}
