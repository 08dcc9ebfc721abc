/**
 * Stores the history of sessions (events), and the events that are still to be recorded (due records). Both are in the partition of their
 * session; those of a logout of everyone are in the first partition.
 */
import {
  type DueRecord,
  type DueRecords,
  type EventRecord,
  MAX_ENDS_OF_ALL,
  MAX_EVENT_SESSIONS,
  MAX_EVENTS_PER_SESSION,
  type SessionEvent,
  type SessionEventLog,
} from "../../session/events/events.ts";
import { parseSessionId, type SessionId } from "../../session/model.ts";
import { StoreUnavailable } from "../../session/ports.ts";
import { storeMs } from "../../session/time.ts";
import { creationNote, dueRecord, eventText, parseEvent } from "../event-text.ts";
import { buffers, pairsOf, text } from "./encoding/replies.ts";
import { FIRST_TAG, slicesOf, tagOfSession, tagOfSubject } from "./partitions.ts";
import type { ScriptRunner } from "./script-runner.ts";

const ALL = "*";
const MAX_DUE = 64;
/** How many sessions of each index one run of lua/event_sessions.lua reads. */
const EVENT_SESSIONS_AT_ONCE = 500;

export function createEvents(runner: Pick<ScriptRunner, "run" | "clustered">): SessionEventLog {
  const readEvents = async (tag: string, subject: string, sid: string): Promise<SessionEvent[]> => {
    const texts = buffers(await runner.run("events", [tag], [subject, sid]));
    const sessions = texts.map((text) => text.toString().split("\n").filter(Boolean).map(parseEvent));
    const lastOf = (events: readonly SessionEvent[]) => Math.max(...events.map(({ time }) => time));
    return sessions
      .sort((a, b) => lastOf(b) - lastOf(a))
      .slice(0, MAX_EVENT_SESSIONS)
      .flat();
  };

  return {
    /** Writes the events of each partition separately: if one partition fails, only its events are written again. */
    async recordEvents(records, retentionMs) {
      const byTag = Map.groupBy(records, ({ event: { sid } }) => (sid === undefined ? ALL : tagOfSession(sid)));
      const parts = await Promise.all(
        [...byTag].map(async ([tag, some]) => {
          const isAll = tag === ALL;
          const most = isAll ? MAX_ENDS_OF_ALL : MAX_EVENTS_PER_SESSION;
          const args = [retentionMs, most, ...some.flatMap(argumentsOf)] as const;
          try {
            await runner.run("record_events", [isAll ? FIRST_TAG : tag], args);
            return [];
          } catch {
            return some; // Events are written again after any error. This does no harm, because an event that is written twice is kept once.
          }
        }),
      );
      return parts.flat();
    },

    async events(of) {
      const own =
        "sid" in of
          ? readEvents(tagOfSession(of.sid), "", of.sid)
          : readEvents(tagOfSubject(of.subject), of.subject, "");
      return (await Promise.all([own, readEvents(FIRST_TAG, "", ALL)])).flat();
    },

    async eventSessions(subject) {
      const sids = new Set<SessionId>();
      for (let from = 0, more = "+"; more !== ""; from += EVENT_SESSIONS_AT_ONCE) {
        const reply = await runner.run(
          "event_sessions",
          [tagOfSubject(subject)],
          [subject, from, EVENT_SESSIONS_AT_ONCE],
        );
        const [found = "", rest = ""] = buffers(reply).map(text);
        for (const [sid] of found.matchAll(/.{23}/g)) sids.add(sid as SessionId);
        more = rest;
      }
      return [...sids].sort();
    },

    async dueRecords() {
      const parts = slicesOf(runner);
      const replies = await Promise.allSettled(parts.map((tags) => readDue(runner, tags)));
      const read = replies.flatMap((reply) => (reply.status === "fulfilled" ? [reply.value] : []));
      if (read.length === 0) throw new StoreUnavailable("Redis: no partition can be read");
      return read;
    },

    async claimRecord({ key, since }) {
      const sid = parseSessionId(key.replace(/^\+/, ""));
      const tag = sid === undefined ? FIRST_TAG : tagOfSession(sid);
      return text(await runner.run("claim", [tag], [key, since])) === "claimed";
    },
  };
}

async function readDue(runner: Pick<ScriptRunner, "run">, tags: readonly string[]): Promise<DueRecords> {
  const [now, ...texts] = buffers(await runner.run("due", tags, [MAX_DUE]));
  const records = pairsOf(texts).map(([key, due]): DueRecord => {
    const [since, time, what = "", note = "", ...subject] = due.toString().split("\n");
    const known = { key: text(key), since: storeMs(Number(since)), at: storeMs(Number(time)) };
    return dueRecord({ ...known, what, note, subject: subject.join("\n") });
  });
  return { part: tags[0] ?? "", now: storeMs(Number(text(now))), records };
}

function argumentsOf(record: EventRecord): readonly string[] {
  const { event, dueKey = "" } = record;
  const { sid = ALL, subject, type } = event;
  const note = type === "created" ? creationNote(event) : "";
  return [dueKey, sid, sid === ALL ? "" : (subject ?? ""), eventText(record), note];
}
