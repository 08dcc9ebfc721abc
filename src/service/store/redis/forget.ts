/**
 * Removes what Redis keeps of a subject, except of its live sessions. Each script does a bounded amount of work. All of them may run again:
 * what one of them has removed stays removed.
 */
import { type SessionStore, StoreUnavailable } from "../../session/ports.ts";
import { buffer, buffers, text } from "./encoding/replies.ts";
import { tagOfSubject } from "./partitions.ts";
import type { Acknowledge } from "./replicas.ts";
import type { ScriptRunner } from "./script-runner.ts";
import { readSignalsOf } from "./signal-log.ts";

/** How many signals one run of lua/signals_of.lua changes at most. */
const SIGNALS_AT_ONCE = 64;

/** @param finish finishes the bulk logouts of a partition */
export function createForgetting(
  runner: Pick<ScriptRunner, "run">,
  acknowledge: Acknowledge,
  finish: (tag: string) => Promise<void>,
): SessionStore["forget"] {
  return async (subject) => {
    const tag = tagOfSubject(subject);
    await appendSignals(runner, tag);
    const events = await forgetEvents(runner, tag, subject, finish);
    await forgetRecords(runner, tag, subject);
    const ofRecords = await forgetEvents(runner, tag, subject, finish);
    const signals = await forgetSignals(runner, subject);
    await acknowledge(tag, []);
    return { events: events + ofRecords, signals };
  };
}

/** Appends the signals of a logout of everyone that are still to be appended: they are made from records that are about to be changed. */
async function appendSignals(runner: Pick<ScriptRunner, "run">, tag: string): Promise<void> {
  const isPending = async () => text(buffers(await runner.run("signal_ends", [tag], []))[0]).endsWith("+");
  while (await isPending()) await runner.run("signals", [tag], [0, "-", 1]);
}

/** Removes the events, the due records and the index entries. Returns how many events were removed. */
async function forgetEvents(
  runner: Pick<ScriptRunner, "run">,
  tag: string,
  subject: string,
  finish: (tag: string) => Promise<void>,
): Promise<number> {
  for (let removed = 0; ; ) {
    const [outcome, events] = buffers(await runner.run("forget", [tag], [subject])).map(text);
    removed += Number(events);
    if (outcome === "done") return removed;
    if (outcome === "full") throw new StoreUnavailable("Redis: too many events are still to be recorded");
    if (outcome === "busy") await finish(tag);
  }
}

async function forgetRecords(runner: Pick<ScriptRunner, "run">, tag: string, subject: string): Promise<void> {
  let after: Buffer | "" = "";
  do after = buffer(await runner.run("forget_records", [tag], [subject, after]));
  while (after.length > 0);
}

/** Returns how many of the signals some subscription has not read yet. */
async function forgetSignals(runner: Pick<ScriptRunner, "run">, subject: string): Promise<number> {
  let unread = 0;
  for (let after: number | undefined = 0; after !== undefined; ) {
    const { next, found } = await readSignalsOf(runner, subject, after, SIGNALS_AT_ONCE, "forget");
    unread += found.filter(([, ids]) => ids.length > 0).length;
    after = next;
  }
  return unread;
}
