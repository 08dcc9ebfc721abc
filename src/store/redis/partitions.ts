/**
 * Partitions: 256, fixed. The first byte of a session id, which is the first of its subject's SHA-256. All keys of
 * one carry its hash tag, so that they lie in one slot of a cluster and change in one script.
 */
import { hash } from "node:crypto";
import type { SessionId } from "../../session/words.ts";

/** The hash tags, by partition. */
export const TAGS: readonly string[] = Array.from(
  { length: 256 },
  (_, byte) => `{${byte.toString(16).padStart(2, "0")}}`,
);

const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/** The first two characters of an id hold its first byte, and four bits of the second. */
const BY_START = new Map<string, string>();
for (const [high, a] of [...ALPHABET].entries()) {
  for (const [low, b] of [...ALPHABET].entries()) BY_START.set(a + b, TAGS[(high << 2) | (low >> 4)] ?? "");
}

export function tagOfSession(sid: SessionId): string {
  return BY_START.get(sid.slice(0, 2)) ?? "";
}

export function tagOfSubject(subject: string): string {
  return `{${hash("sha256", subject).slice(0, 2)}}`;
}
