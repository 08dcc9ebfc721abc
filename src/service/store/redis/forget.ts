/**
 * Removes what Redis keeps of a subject, except of its live sessions. Each script does a bounded amount of work. All of them may run again:
 * what one of them has removed stays removed.
 */
import { type SessionStore, StoreUnavailable } from "../../session/ports.ts";
import { buffer, buffers, text } from "./encoding/replies.ts";
import type { Link } from "./link.ts";
import { tagOfSubject } from "./partitions.ts";
import type { Acknowledge } from "./replicas.ts";
import { readSignalsOf } from "./signal-log.ts";

/** How many signals one run of lua/signals_of.lua changes at most. */
const SIGNALS_AT_ONCE = 64;

/** @param finish finishes the bulk logouts of a partition */
export function createForgetting(
  link: Pick<Link, "run">,
  acknowledge: Acknowledge,
  finish: (tag: string) => Promise<void>,
): SessionStore["forget"] {
  return async (subject) => {
    const tag = tagOfSubject(subject);
    await appendSignals(link, tag);
    const events = await forgetEvents(link, tag, subject, finish);
    await forgetRecords(link, tag, subject);
    const ofRecords = await forgetEvents(link, tag, subject, finish);
    const signals = await forgetSignals(link, subject);
    await acknowledge(tag, []);
    return { events: events + ofRecords, signals };
  };
}

/** Appends the signals of a logout of everyone that are still to be appended: they are made from records that are about to be changed. */
async function appendSignals(link: Pick<Link, "run">, tag: string): Promise<void> {
  const isPending = async () => text(buffers(await link.run("signal_ends", [tag], []))[0]).endsWith("+");
  while (await isPending()) await link.run("signals", [tag], [0, "-", 1]);
}

/** Removes the events, the due records and the index entries. Returns how many events were removed. */
async function forgetEvents(
  link: Pick<Link, "run">,
  tag: string,
  subject: string,
  finish: (tag: string) => Promise<void>,
): Promise<number> {
  for (let removed = 0; ; ) {
    const [outcome, events] = buffers(await link.run("forget", [tag], [subject])).map(text);
    removed += Number(events);
    if (outcome === "done") return removed;
    if (outcome === "full") throw new StoreUnavailable("Redis: too many events are still to be recorded");
    if (outcome === "busy") await finish(tag);
  }
}

async function forgetRecords(link: Pick<Link, "run">, tag: string, subject: string): Promise<void> {
  let after: string | Buffer = "";
  do after = buffer(await link.run("forget_records", [tag], [subject, after]));
  while (after.length > 0);
}

/** Returns how many of the signals some subscription has not read yet. */
async function forgetSignals(link: Pick<Link, "run">, subject: string): Promise<number> {
  let unread = 0;
  for (let after: number | undefined = 0; after !== undefined; ) {
    const { next, found } = await readSignalsOf(link, subject, after, SIGNALS_AT_ONCE, "forget");
    unread += found.filter(([, ids]) => ids.length > 0).length;
    after = next;
  }
  return unread;
}
