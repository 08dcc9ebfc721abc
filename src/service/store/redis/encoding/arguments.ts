/** The arguments of scripts, in their order. The scripts explain them: beside `unpack(ARGV, …)`, or at their beginning. */
import type { SessionId } from "../../../session/model.ts";
import type { Argument } from "../connection/send.ts";
import type { Verb } from "../scripts.ts";

type ByName = {
  rotate: CutTo<
    9 | 10 | 11 | 12 | 17 | 25 | 26,
    [
      ...[sid: SessionId, generation: number, nonce1: number, nonce2: number, issuedAt: number],
      ...[fresh1: number, fresh2: number, reuseIntervalMs: number, markerLifeMs: number],
      ...[seen: string, deviceLifeMs: number, presentedHow: number],
      ...[deviceIssuedAt: number, device1: number, device2: number, device3: number, device4: number],
      ...[proof1: number, proof2: number, proof3: number, proof4: number],
      ...[proof5: number, proof6: number, proof7: number, proof8: number],
      client: string,
    ]
  >;
  create: [
    ...[sid: SessionId, subject: string, child1: number, child2: number],
    ...[idleTimeoutMs: number, absoluteLifetimeMs: number, body: Buffer, cap: number, markerLifeMs: number],
    ...[replaces: SessionId | "", flags: number, endedNote: string, createdNote: string],
    ...[limit: string, reservedLifeMs: number | "", logins: string, progress: Buffer | ""],
  ];
  end: CutTo<
    5 | 6 | 14,
    [
      ...[sid: SessionId, reason: string, markerLifeMs: number, note: string, knownSubject: string, issuedAt: number],
      ...[proof1: number, proof2: number, proof3: number, proof4: number],
      ...[proof5: number, proof6: number, proof7: number, proof8: number],
    ]
  >;
  end_owned: [actorSid: SessionId, sid: SessionId, reason: string, markerLifeMs: number, note: string];
  end_all: [
    ...[subject: string, reason: string, markerLifeMs: number, except: string, actorSid: string],
    ...[id: string, note: string],
  ];
  revoke_all: [revokedUntil: number, markerLifeMs: number, note: string, dueKey: string];
  elevate: [sid: SessionId, time: number, authentication: Buffer, staleLifeMs: number | ""];
  update: [
    ...[sid: SessionId, ifVersion: number | "", audiences: Buffer | "", claims: string],
    staleLifeMs: number | "",
  ];
  unbind: [sid: SessionId];
  register_key: [
    ...[sid: SessionId, generation: number, key: Buffer, thumbprint: Buffer, kind: number],
    reuseIntervalMs: number,
  ];
  expire: [
    ...[instance: string, leaseMs: number, fromEntry: Buffer | "", toEntry: Buffer | "", markerLifeMs: number],
    expiredNote: string,
  ];
  list: [subject: string, before: Buffer, count: number];
  sweep: [subject: string, after: Buffer | "", least: Buffer | number];
  attach: [actorSid: SessionId, sid: SessionId, lifeMs: number, most: number];
  signals: [after: number, sid: string, most: number];
  signals_of: [subject: string, after: number, most: number, verb: "read" | "forget"];
  signal_advance: [
    ...[holder: string, position: number | string, subscription: string, number: number, sid: string],
    ...[delivered: number, givenUp: number],
  ];
  signal_lease: [holder: string, lifeMs: number, retentionMs: number];
  signal_reader: [verb: "add" | "restart" | "remove", subscription: string, retentionMs: number, wantedNotices: string];
};

/** The first of some arguments, cut after as many as one of the lengths says. */
type CutTo<Lengths extends number, All extends readonly unknown[]> = All extends readonly [...infer Others, unknown]
  ? (All["length"] extends Lengths ? All : never) | CutTo<Lengths, Others>
  : never;

/** The arguments of a script; any, if `ByName` does not have it. */
export type ArgumentsOf<V extends Verb> = V extends keyof ByName ? Readonly<ByName[V]> : readonly Argument[];
