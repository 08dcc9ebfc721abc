/**
 * Partitions: 256, fixed. The first byte of a session id, which is the first of its subject's SHA-256. All keys of
 * one carry its hash tag, so that they lie in one slot of a cluster and change in one script.
 */
import { hash } from "node:crypto";
import type { Place, SessionId } from "../../session/model.ts";

/** The hash tags, by partition. */
export const TAGS: readonly string[] = Array.from(
  { length: 256 },
  (_, byte) => `{${byte.toString(16).padStart(2, "0")}}`,
);

/** The partition that is used if one must stand for all. */
export const FIRST_TAG = TAGS[0] ?? "";

/** The first two characters of an id hold its first byte, and four bits of the second. */
const BY_START = new Map<string, string>();
for (const [byte, tag] of TAGS.entries()) {
  for (let next = 0; next < 256; next += 16) BY_START.set(Buffer.of(byte, next).toString("base64url").slice(0, 2), tag);
}

export function tagOfSession(sid: SessionId): string {
  return BY_START.get(sid.slice(0, 2)) ?? "";
}

export function tagOfSubject(subject: string): string {
  return `{${hash("sha256", subject).slice(0, 2)}}`;
}

export function tagOf(place: Place): string {
  return "sid" in place ? tagOfSession(place.sid) : tagOfSubject(place.subject);
}
