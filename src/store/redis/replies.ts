/** What the scripts return, read. They are ours: a reply of another shape is a bug. */

import type { Session, SessionId } from "../../session/model.ts";
import type { ElevateOutcome, Found, RotateOutcome } from "../../session/ports.ts";
import { byClock } from "../shifted.ts";
import { decodeRotation, decodeSession } from "./record.ts";

/** Where the record begins in a reply that starts with a letter and the time. */
const RECORD = 7;

const ROTATE_OUTCOMES: Readonly<Record<string, RotateOutcome["outcome"]>> = {
  p: "repeat",
  r: "rotate",
  h: "heal",
  v: "recover",
  x: "reuse",
  m: "revoked",
  u: "unknown",
  i: "idle",
  e: "expired",
};

/** @param shift by which the clock of the day is ahead of the store's time, ms */
export function rotateOutcome(sid: SessionId, answer: unknown, shift: number): RotateOutcome {
  const reply = buffer(answer);
  const outcome = ROTATE_OUTCOMES[letter(reply)];
  switch (outcome) {
    case undefined:
      throw new TypeError("the rotate script returned an unknown outcome");
    case "revoked":
    case "unknown":
    case "idle":
    case "expired":
      return { outcome };
    case "reuse":
      return { outcome, subject: decodeSession(sid, reply, RECORD).subject };
    default: {
      const session = decodeSession(sid, reply, RECORD);
      const { generation, childNonce, childMintedAt } = decodeRotation(reply, RECORD);
      const child = { generation: generation + 1, nonce: childNonce, issuedAt: childMintedAt };
      return { outcome, session: byClock(session, shift), child, now: time(reply) + shift };
    }
  }
}

export function found(sid: SessionId, answer: unknown, shift: number): Found {
  const reply = buffer(answer);
  switch (letter(reply)) {
    case "l": {
      const session = byClock(decodeSession(sid, reply, RECORD), shift);
      return { status: "live", session, rotation: decodeRotation(reply, RECORD), now: time(reply) };
    }
    case "m":
      return { status: "revoked" };
    default:
      return { status: "unknown" };
  }
}

export function elevateOutcome(sid: SessionId, answer: unknown, shift: number): ElevateOutcome {
  const reply = buffer(answer);
  switch (letter(reply)) {
    case "l":
      return { outcome: "elevated", session: byClock(decodeSession(sid, reply, RECORD), shift) };
    case "o":
      return { outcome: "outdated" };
    case "m":
      return { outcome: "revoked" };
    default:
      return { outcome: "unknown" };
  }
}

/** Of sid, record, sid, record, … */
export function listed(answer: unknown): Session[] {
  const reply = buffers(answer);
  const sessions: Session[] = [];
  for (let at = 0; at < reply.length; at += 2) {
    sessions.push(decodeSession(sessionId(buffer(reply[at])), buffer(reply[at + 1]), 0));
  }
  return sessions;
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

function letter(reply: Buffer): string {
  return String.fromCharCode(reply[0] ?? 0);
}

function time(reply: Buffer): number {
  return reply.readUIntBE(1, 6);
}
