/** Events of sessions in Redis: beside the sessions of their partition; those of all in the first one. */
import {
  type EventsOf,
  MAX_ENDS_OF_ALL,
  MAX_EVENT_SESSIONS,
  MAX_EVENTS_PER_SESSION,
  type SessionEvent,
  type SessionEventLog,
} from "../../session/events.ts";
import { eventText, parseEvent } from "../event-text.ts";
import type { Link } from "./link.ts";
import { TAGS, tagOfSession, tagOfSubject } from "./partitions.ts";
import { buffers } from "./replies.ts";

/** Where the ends of all are. */
const FIRST_TAG = TAGS[0] ?? "";
const ALL = "*";

export class RedisEvents implements SessionEventLog {
  readonly #link: Link;

  constructor(link: Link) {
    this.#link = link;
  }

  async recordEvents(events: readonly SessionEvent[], retention: number): Promise<void> {
    const byTag = new Map<string, SessionEvent[]>();
    const ofAll: SessionEvent[] = [];
    for (const event of events) {
      const tag = event.sid === undefined ? undefined : tagOfSession(event.sid);
      if (tag === undefined) ofAll.push(event);
      else byTag.set(tag, [...(byTag.get(tag) ?? []), event]);
    }
    await Promise.all([
      ...[...byTag].map(([tag, some]) => this.#record(tag, some, retention, MAX_EVENTS_PER_SESSION)),
      ...(ofAll.length > 0 ? [this.#record(FIRST_TAG, ofAll, retention, MAX_ENDS_OF_ALL)] : []),
    ]);
  }

  async events(of: EventsOf): Promise<readonly SessionEvent[]> {
    const own =
      "sid" in of ? this.#read(tagOfSession(of.sid), "", of.sid) : this.#read(tagOfSubject(of.subject), of.subject, "");
    return (await Promise.all([own, this.#read(FIRST_TAG, "", ALL)])).flat();
  }

  async #record(tag: string, events: readonly SessionEvent[], retention: number, most: number): Promise<void> {
    const args = events.flatMap((event) => [
      event.sid ?? ALL,
      event.sid === undefined ? "" : (event.subject ?? ""),
      event.type === "ended" ? event.type : "",
      eventText(event),
    ]);
    await this.#link.run("record", [tag], [retention, most, MAX_EVENT_SESSIONS, ...args]);
  }

  async #read(tag: string, subject: string, sid: string): Promise<SessionEvent[]> {
    const texts = buffers(await this.#link.run("events", [tag], [subject, sid]));
    return texts.flatMap((text) => text.toString().split("\n").filter(Boolean).map(parseEvent));
  }
}
