/** The arguments of scripts, in their order. The scripts explain them: beside `unpack(ARGV, …)`, or at their beginning. */
import type { SessionId } from "../../../session/model.ts";

type ByVerb = {
  attach: [actorSid: SessionId, sid: SessionId, lifeMs: number, most: number];
  attached: [];
  claim: [key: string, since: number];
  count: [chunks: number];
  create: [
    ...[sid: SessionId, subject: string, child1: number, child2: number],
    ...[idleTimeoutMs: number, absoluteLifetimeMs: number, body: Buffer, cap: number, markerLifeMs: number],
    ...[replaces: SessionId | "", flags: number, endedNote: string, createdNote: string],
    ...[limit: string, reservedLifeMs: number | "", logins: string, progress: Buffer | ""],
  ];
  detach: [sid: SessionId];
  due: [most: number];
  elevate: [sid: SessionId, time: number, authentication: Buffer, staleLifeMs: number | ""];
  end: [sid: SessionId, reason: string, markerLifeMs: number, note: string, knownSubject: string, holder: string];
  end_all: [
    ...[subject: string, reason: string, markerLifeMs: number, except: string, callerSid: string],
    ...[id: string, note: string],
  ];
  end_owned: [callerSid: SessionId, sid: SessionId, reason: string, markerLifeMs: number, note: string];
  end_rest: [id: string, markerLifeMs: number];
  event_sessions: [subject: string, from: number, count: number];
  events: [subject: string, sid: string];
  expire: [
    ...[instance: string, leaseMs: number, fromEntry: Buffer | "", toEntry: Buffer | "", markerLifeMs: number],
    expiredNote: string,
  ];
  find: [sid: SessionId];
  find_many: [sids: string];
  forget: [subject: string];
  forget_last_seen: [sid: SessionId];
  forget_records: [subject: string, after: Buffer | ""];
  latest_creation: [];
  list: [subject: string, before: Buffer, count: number];
  newest: [count: number, before: Buffer];
  provider_note: [id: string, lifeMs: number];
  record_events: [retentionMs: number, most: number, ...records: string[]];
  register_key: [
    ...[sid: SessionId, generation: number, key: Buffer, thumbprint: Buffer, kind: number],
    reuseIntervalMs: number,
  ];
  revocations: [most: number, ...positions: string[]];
  revoke_all: [allEndedUntil: number, markerLifeMs: number, note: string, dueKey: string];
  rotate: [
    ...[sid: SessionId, generation: number, nonce1: number, nonce2: number, issuedAt: number],
    ...[fresh1: number, fresh2: number, reuseIntervalMs: number, markerLifeMs: number],
    ...[seen: string, deviceLifeMs: number, presentation: string],
  ];
  signal_advance: [
    ...[holder: string, position: number | string, subscription: string, number: number, sid: string],
    ...[delivered: number, givenUp: number],
  ];
  signal_cursors: [subscription: string];
  signal_ends: [];
  signal_lease: [holder: string, lifeMs: number, retentionMs: number];
  signal_reader: [verb: "add" | "restart" | "remove", subscription: string, retentionMs: number, wantedNotices: string];
  signal_waiting: [];
  signals: [after: number, sid: string, most: number];
  signals_of: [subject: string, after: number, most: number, verb: "read" | "forget"];
  subscription: [verb: string, id: string, ...rest: (string | number)[]];
  sweep: [subject: string, after: Buffer | "", least: Buffer | number];
  unbind: [sid: SessionId];
  update: [
    ...[sid: SessionId, ifVersion: number | "", audiences: Buffer | "", claims: string],
    staleLifeMs: number | "",
  ];
  upstream: [login: string];
};

/** The name of a script that has a deadline (scripts.ts): that of its file in lua/, without the ending. */
export type Verb = keyof ByVerb;

export type ArgumentsOf<V extends Verb> = Readonly<ByVerb[V]>;
