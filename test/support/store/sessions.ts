/** Test data for stores: ids, nonces and subjects that are different in each call. */
import { hash } from "node:crypto";
import { expect } from "vitest";
import type { NewSession, SessionId } from "../../../src/service/session/model.ts";
import type { CreateOutcome, RotateOutcome } from "../../../src/service/session/ports.ts";
import { wallMs } from "../../../src/service/session/time.ts";

export const SECOND = 1000;
export const REUSE_INTERVAL = 10 * SECOND;
export const MARKER_LIFE = 300 * SECOND;
export const IDLE = 3_600 * SECOND;
export const ABSOLUTE = 24 * 3_600 * SECOND;

let count = 0;

/** Returns different bytes at each call, distributed like random ones. */
function fresh(length: number): Buffer {
  return Buffer.from(hash("sha256", `fresh ${++count} of ${process.pid}`), "hex").subarray(0, length);
}

export function nonce(): string {
  return fresh(8).toString("base64url");
}

export function subject(name = "subject"): string {
  return `${name}-${++count}`;
}

export function sidOf(subject: string): SessionId {
  const partition = Buffer.from(hash("sha256", subject).slice(0, 2), "hex");
  return Buffer.concat([partition, fresh(16)]).toString("base64url") as SessionId;
}

/** Returns another subject whose sessions are in the same partition as those of `user`. */
export function neighbour(user: string): string {
  for (;;) {
    const other = subject("neighbour");
    if (sidOf(other).slice(0, 1) === sidOf(user).slice(0, 1) && partition(other) === partition(user)) return other;
  }
}

/** Returns a subject whose sessions are in another partition than those of `user`. */
export function elsewhere(user: string): string {
  for (;;) {
    const other = subject("elsewhere");
    if (partition(other) !== partition(user)) return other;
  }
}

function partition(user: string): number | undefined {
  return Buffer.from(sidOf(user), "base64url")[0];
}

export function newSession(subject: string, more: Partial<NewSession> = {}): NewSession {
  return {
    sid: sidOf(subject),
    subject,
    clientId: "web",
    audience: "https://api.example.test",
    claims: "{}",
    client: { userAgent: "", ipAddress: "", displayName: "" },
    idleTimeoutMs: IDLE,
    absoluteLifetimeMs: ABSOLUTE,
    ...more,
  };
}

/**
 * A session with every field that one can have, but for `dpopJkt`, which becomes its device. A new field does not compile until it is here;
 * then the tests of the stores and of the views fail until it is stored and shown.
 */
export function fullSession(subject: string): Required<Omit<NewSession, "dpopJkt">> {
  return {
    sid: sidOf(subject),
    subject,
    clientId: "cli",
    audience: ["https://a.example", "https://b.example"],
    claims: '{"role":"admin"}',
    client: { userAgent: "browser", ipAddress: "192.0.2.7", displayName: "laptop" },
    idleTimeoutMs: IDLE,
    absoluteLifetimeMs: ABSOLUTE,
    authentication: { time: wallMs(1_700_000_000_000), methods: ["pwd", "otp"], contextClass: "gold" },
    deviceRequired: true,
    persistent: false,
    kind: "desktop",
    transport: "cookie",
    actor: { subject: "support", reason: "a ticket", sessionId: sidOf("support") },
    upstream: { issuer: "https://login.example", sessionId: "a login", subject: "a user" },
  };
}

/**
 * The results of `end`: `ENDED` for a live session, `MARKED` for an unknown session, and `ALREADY_ENDED` for a session that has already
 * ended.
 */
export const ENDED = { ok: true, wasLive: true, subject: expect.any(String) };
export const MARKED = { ok: true, wasLive: false };
export const ALREADY_ENDED = { ok: false, reason: "already_ended" };

/** Returns what an outcome says of sessions that have ended and had no actor. */
export const endedSessions = (...sids: SessionId[]) => sids.map((sid) => ({ sid }));

export const sidsOf = (sessions: readonly { readonly sid: SessionId }[]) => sessions.map(({ sid }) => sid);

/** Returns the result of an `endAll` that has ended these sessions. */
export function endedAll(...sids: SessionId[]) {
  return { ok: true, ended: endedSessions(...sids), count: sids.length };
}

/** Returns the outcome of a presented token in one word. */
export function outcomeOf(rotated: RotateOutcome): string {
  return rotated.ok ? rotated.outcome : rotated.reason;
}

/** Returns the outcome of a creation that nothing refuses. */
export function expectCreated(outcome: CreateOutcome) {
  if (!outcome.ok) throw new Error(`the creation was refused: ${outcome.reason}`);
  return outcome;
}
