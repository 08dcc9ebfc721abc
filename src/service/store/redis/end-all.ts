/**
 * Ends all sessions of a subject, or all but one session.
 *
 * If the sessions are few, one script ends them. Otherwise this is a bulk logout: one script stores the time of creation up to which they
 * end. From then on all of them have ended, because every script that acts on a session compares the session's time of creation with it.
 * Further scripts delete the records and write the markers and log entries, a bounded number each, so that no script delays
 * other commands for long. The call returns when all scripts have run, because verifiers learn of endings only from the log. If the
 * instance that began the logout dies, the logout is continued by another call for the subject, by a call that ends a session of the
 * subject, or by an instance that finds no progress between two readings of the log (log-reader.ts).
 */
import { randomBytes } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { type EndAllOutcome, type EndedSession, type SessionStore, StoreUnavailable } from "../../session/ports.ts";
import { noteOf, RECORDED_WITHIN_MS } from "../event-text.ts";
import { buffers, endedSession, text } from "./encoding/replies.ts";
import { KEY } from "./keys.ts";
import { tagOfSubject } from "./partitions.ts";
import type { Acknowledge } from "./replicas.ts";
import type { ScriptRunner } from "./script-runner.ts";

/** How often lua/end_rest.lua is run again if no reply arrives, and the delay before the first repetition, in ms. The delay doubles. */
const RETRIES = 3;
const RETRY_MS = 50;

const ID_BYTES = 8;

/** The reply of one run of lua/end_rest.lua: how many sessions the logout has ended so far, and which ones this run has ended. */
type Part = {
  readonly state: "more" | "done" | "none";
  readonly count: number;
  readonly ended: readonly EndedSession[];
};

export type SubjectEnds = Pick<SessionStore, "endAll"> & {
  /** Finishes the bulk logouts of a partition. */
  finish(tag: string): Promise<void>;
};

export function createSubjectEnds(
  runner: Pick<ScriptRunner, "run">,
  acknowledge: Acknowledge,
  markerLifeMs: number,
): SubjectEnds {
  const runPart = async (tag: string, id: string): Promise<Part> => {
    const [state, count, ...ended] = buffers(await runner.run("end_rest", [tag], [id, markerLifeMs]));
    return { state: text(state) as Part["state"], count: Number(count && text(count)), ended: ended.map(endedSession) };
  };

  const endMany = async (tag: string, id: string): Promise<EndAllOutcome> => {
    const ended: EndedSession[] = [];
    const startedAt = performance.now();
    for (;;) {
      const part = await retry(() => runPart(tag, id));
      if (part.state === "none") throw new StoreUnavailable("Redis: a bulk logout was lost in a failover");
      ended.push(...part.ended);
      if (part.state === "more") continue;
      await acknowledge(tag, [KEY.bulk_logout + id]);
      const isLate = performance.now() - startedAt > RECORDED_WITHIN_MS;
      return { ok: true, ended: isLate ? [] : ended, count: part.count };
    }
  };

  return {
    async endAll(subject, reason, { except = "", caller = "", origin } = {}) {
      const tag = tagOfSubject(subject);
      const id = randomBytes(ID_BYTES).toString("base64url");
      const args = [subject, reason, markerLifeMs, except, caller, id, noteOf(origin)] as const;
      for (;;) {
        const [outcome, ...sids] = buffers(await runner.run("end_all", [tag], args));
        switch (text(outcome)) {
          case "again":
            continue;
          case "busy":
            await runPart(tag, "");
            continue;
          case "begun":
            return endMany(tag, id);
          case "ended": {
            const ended = sids.map(endedSession);
            // One script has ended all sessions, so one acknowledgement covers them.
            await acknowledge(tag, ended[0] === undefined ? [] : [KEY.marker + ended[0].sid]);
            return { ok: true, ended, count: ended.length };
          }
          default:
            await acknowledge(tag, []);
            return { ok: false, reason: "caller_ended" };
        }
      }
    },

    async finish(tag) {
      while ((await runPart(tag, "")).state !== "none");
    },
  };
}

/** Runs lua/end_rest.lua again if its reply does not arrive: the sessions have ended already, and the script may run twice. */
async function retry(run: () => Promise<Part>): Promise<Part> {
  for (let failures = 0; ; failures++) {
    try {
      return await run();
    } catch (error) {
      if (failures === RETRIES || !(error instanceof StoreUnavailable)) throw error;
      await delay(RETRY_MS << failures);
    }
  }
}
