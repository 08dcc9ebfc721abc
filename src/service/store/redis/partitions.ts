/**
 * The 256 partitions of the sessions. A session's partition is the first byte of the SHA-256 of its subject, which is also the first byte
 * of its id. All keys of a partition have its hash tag, so that they are in one slot of a cluster and one script can change them.
 */
import { hash } from "node:crypto";
import type { Place, SessionId } from "../../session/model.ts";

/** The Redis hash tags of the partitions, `{00}` to `{ff}`. */
export const TAGS: readonly string[] = Array.from(
  { length: 256 },
  (_, byte) => `{${byte.toString(16).padStart(2, "0")}}`,
);

/** The partition for data that belongs to no single session, such as the subscriptions. */
export const FIRST_TAG = TAGS[0] ?? "";

/** Maps the first two characters of a session id, which contain its first byte and four bits of the second one, to the hash tag. */
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

/** Splits tags into groups of at most `size`, each for one script. In a cluster a script can only use one partition. */
export function slicesOf(tags: readonly string[], size: number): readonly (readonly string[])[] {
  return Array.from({ length: Math.ceil(tags.length / size) }, (_, at) => tags.slice(at * size, (at + 1) * size));
}
