/**
 * The place of a session in the status lists: the name of its list, and its index there. It is a part of the session id, so that the store
 * keeps nothing more, and every instance knows the place of each session in the revocation log. A session id is 17 bytes in base64url. Its
 * characters 4 to 11 (48 random bits) are the name of the list, and the low 20 bits of its characters 12 to 15 are the index. So an id that
 * was made while status lists were off has a place, too, in a list of its own.
 */
import type { SessionId } from "../../session/model.ts";

export const LIST_SIZE = 2 ** 20;

type Place = {
  /** The name of the list: 8 characters of base64url. */
  readonly list: string;
  readonly index: number;
};

export function placeOf(sid: SessionId): Place {
  return { list: sid.slice(4, 12), index: Buffer.from(sid.slice(12, 16), "base64url").readUIntBE(0, 3) % LIST_SIZE };
}

/** Returns the session id moved to another list, at the same index. */
export function moveToList(sid: SessionId, list: string): SessionId {
  return `${sid.slice(0, 4)}${list}${sid.slice(12)}` as SessionId;
}
