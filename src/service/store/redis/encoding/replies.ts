/** Decodes the replies of the scripts. A reply of another form is a bug. */
import type { Session, SessionId } from "../../../session/model.ts";
import type {
  ElevateOutcome,
  EndedSession,
  EndOutcome,
  EndOwnedOutcome,
  Found,
  RegisterKeyOutcome,
  RotateOutcome,
  UnbindOutcome,
  UpdateOutcome,
} from "../../../session/ports.ts";
import { decodeChild, decodeRotation, decodeSession, timeAt } from "./record.ts";

/** The offset of the store's time in a reply. A letter precedes it. */
const TIME = 1;

/** The offset of the session's record in a reply. A letter and the time precede it. */
const RECORD = 7;

/** The letter that precedes the outcome's letter in a reply if the refresh has bound the session to its key. */
const FIRST_USE = "b";

type Rotated = Extract<RotateOutcome, { readonly ok: true }>;
type NotRotated = Extract<RotateOutcome, { readonly ok: false }>["reason"];

/** Successful outcomes of lua/rotate.lua by their letter, which is in upper case if the request has proven the session's key. */
const ROTATED: Readonly<Record<string, Rotated["outcome"]>> = { p: "repeat", r: "rotate", h: "heal", v: "recover" };

/** Refusals of lua/rotate.lua by their letter. */
const NOT_ROTATED: Readonly<Record<string, NotRotated>> = {
  x: "reuse",
  y: "two_holders",
  d: "device_proof_missing",
  q: "device_required",
  n: "proof_missing",
  k: "other_key",
  m: "revoked",
  u: "unknown",
  i: "idle",
  e: "expired",
  t: "wrong_transport",
  w: "wrong_client",
};

export function rotateOutcome(sid: SessionId, reply: unknown): RotateOutcome {
  const whole = buffer(reply);
  const isFirstUse = letter(whole) === FIRST_USE;
  const bytes = isFirstUse ? whole.subarray(1) : whole;
  const first = letter(bytes);
  const outcome = ROTATED[first.toLowerCase()];
  if (outcome !== undefined) {
    const session = decodeSession(sid, bytes, RECORD);
    const child = decodeChild(bytes, RECORD);
    const device = isFirstUse ? "first_use" : first in ROTATED ? "unproven" : "proven";
    return { ok: true, outcome, session, child, now: timeAt(bytes, TIME), device };
  }
  const reason = NOT_ROTATED[first];
  switch (reason) {
    case undefined:
      throw new TypeError("the rotate script returned an unknown outcome");
    case "reuse":
    case "two_holders": {
      const { subject, actor } = decodeSession(sid, bytes, RECORD);
      return { ok: false, reason, subject, actor: actor?.subject };
    }
    case "device_proof_missing":
    case "device_required":
    case "proof_missing":
    case "other_key":
      return { ok: false, reason, session: decodeSession(sid, bytes, RECORD) };
    default:
      return { ok: false, reason };
  }
}

export function decodeFound(sid: SessionId, reply: unknown): Found {
  const bytes = buffer(reply);
  if (letter(bytes) !== "l") return notLive(bytes);
  const session = decodeSession(sid, bytes, RECORD);
  return { ok: true, session, rotation: decodeRotation(bytes, RECORD), now: timeAt(bytes, TIME) };
}

export function registerKeyOutcome(sid: SessionId, reply: unknown): RegisterKeyOutcome {
  const bytes = buffer(reply);
  const first = letter(bytes);
  if (first === "l") return { ok: true, session: decodeSession(sid, bytes, RECORD), now: timeAt(bytes, TIME) };
  if (first === "k") return { ok: false, reason: "other_key" };
  return first === "o" ? { ok: false, reason: "outdated" } : notLive(bytes);
}

export function unbindOutcome(sid: SessionId, reply: unknown): UnbindOutcome {
  const bytes = buffer(reply);
  const first = letter(bytes);
  if (first === "l" || first === "n") {
    return { ok: true, session: decodeSession(sid, bytes, RECORD), hadKey: first === "l" };
  }
  return notLive(bytes);
}

export function elevateOutcome(sid: SessionId, reply: unknown): ElevateOutcome {
  const bytes = buffer(reply);
  const first = letter(bytes);
  if (first === "l") return { ok: true, session: decodeSession(sid, bytes, RECORD) };
  if (first === "a") return { ok: false, reason: "has_actor" };
  return first === "o" ? { ok: false, reason: "outdated" } : notLive(bytes);
}

export function updateOutcome(sid: SessionId, reply: unknown): UpdateOutcome {
  const bytes = buffer(reply);
  const first = letter(bytes);
  if (first === "l" || first === "n") {
    return { ok: true, session: decodeSession(sid, bytes, RECORD), isChanged: first === "l" };
  }
  return first === "c" ? { ok: false, reason: "conflict" } : notLive(bytes);
}

/** Returns whether the session has ended in a bulk logout that is not finished. */
export function isEnding(reply: unknown): boolean {
  return text(buffers(reply)[0]) === "pending";
}

export function endOutcome(reply: unknown): EndOutcome {
  const [first, names] = buffers(reply);
  const outcome = text(first);
  switch (outcome) {
    case "ended":
      return { ok: true, wasLive: true, ...decodeNames(buffer(names)) };
    case "marked":
      return { ok: true, wasLive: false };
    case "already_ended":
      return { ok: false, reason: outcome };
    case "proof_missing":
    case "other_key":
      return { ok: false, reason: outcome, ...decodeNames(buffer(names)) };
    default:
      return unknownOutcome();
  }
}

const ENDED = "ended";

export function endOwnedOutcome(reply: unknown): EndOwnedOutcome {
  const outcome = text(reply);
  if (outcome === ENDED) return { ok: true };
  if (outcome.startsWith(ENDED)) return { ok: true, actor: buffer(reply).toString("utf8", ENDED.length) };
  return outcome === "not_found" || outcome === "caller_ended" ? { ok: false, reason: outcome } : unknownOutcome();
}

/** Decodes the subject of a session, and that of its actor in a last line of its own, which is empty if there is none. */
export function decodeNames(bytes: Buffer): { readonly subject: string; readonly actor: string | undefined } {
  const names = bytes.toString();
  const end = names.lastIndexOf("\n");
  return { subject: names.slice(0, end), actor: names.slice(end + 1) || undefined };
}

const SESSION_ID_LENGTH = 23;

/** Decodes the id of a session that has ended, followed by the subject of its actor, if it had one. */
export function endedSession(bytes: Buffer): EndedSession {
  const sid = sessionId(bytes.subarray(0, SESSION_ID_LENGTH));
  return { sid, actor: bytes.toString("utf8", SESSION_ID_LENGTH) || undefined };
}

/** Decodes a list of sid, record, sid, record, … */
export function listed(reply: unknown): Session[] {
  return pairsOf(buffers(reply)).map(([sid, record]) => decodeSession(sessionId(sid), record, 0));
}

/** Splits a list that has two members for each thing, as Redis returns the fields of a hash. */
export function pairsOf<T>(list: readonly T[]): (readonly [T, T])[] {
  return Array.from({ length: list.length / 2 }, (_, at) => [list[2 * at] as T, list[2 * at + 1] as T]);
}

export function buffer(reply: unknown): Buffer {
  if (!Buffer.isBuffer(reply)) throw new TypeError("a script returned no string");
  return reply;
}

export function buffers(reply: unknown): Buffer[] {
  if (!Array.isArray(reply)) throw new TypeError("a script returned no list");
  return reply.map(buffer);
}

export function text(reply: unknown): string {
  return buffer(reply).toString("latin1");
}

export function sessionId(bytes: Buffer): SessionId {
  return text(bytes) as SessionId;
}

/** Returns the outcome of a script that has found no live session. */
function notLive(reply: Buffer): { readonly ok: false; readonly reason: "revoked" | "unknown" } {
  const first = letter(reply);
  if (first === "m") return { ok: false, reason: "revoked" };
  return first === "u" ? { ok: false, reason: "unknown" } : unknownOutcome();
}

function unknownOutcome(): never {
  throw new TypeError("a script returned an unknown outcome");
}

function letter(reply: Buffer): string {
  return String.fromCharCode(reply[0] ?? 0);
}
