/** Creates a session in one run of a script. A subject with many sessions takes several runs, because each run does limited work. */
import type { SessionStore } from "../../session/ports.ts";
import { noteOf } from "../event-text.ts";
import type { Link } from "./link.ts";
import { tagOfSession, tagOfSubject } from "./partitions.ts";
import { decodeSession, encodeBody, nonceWords, versionOf } from "./record.ts";
import type { Acknowledge } from "./replicas.ts";
import { buffer, buffers, sessionId, text } from "./replies.ts";

type Arguments = readonly (string | number | Buffer)[];

/** A time, in ms, that is later than the expiry of every session. */
const NEVER = 2 ** 48;

export function createCreation(
  link: Pick<Link, "run">,
  acknowledge: Acknowledge,
  markerLifeMs: number,
  endOwned: SessionStore["endOwned"],
): SessionStore["create"] {
  return async (session, childNonce, cap, replaces, origin) => {
    const { sid, subject, idleTimeoutMs, absoluteLifetimeMs } = session;
    const tag = tagOfSession(sid);
    if (tag !== tagOfSubject(subject)) throw new TypeError("a session id outside its subject's partition");
    // A session to replace in another partition has another subject, and a separate script ends it before the creation. If the creation
    // then fails, there is one session too few, which is better than one too many.
    const elsewhere = replaces !== undefined && tagOfSession(replaces) !== tag;
    const endedElsewhere = elsewhere && (await endOwned(replaces, replaces, "replaced", origin)).ok;
    const old = elsewhere ? "" : (replaces ?? "");
    const limits = [idleTimeoutMs, absoluteLifetimeMs, encodeBody(session), cap, markerLifeMs, old, versionOf(session)];
    const notes = [noteOf(origin), noteOf(origin, session)];
    const args = [sid, subject, ...nonceWords(childNonce), ...limits, ...notes];
    const [record, replaced, newDevice, ...evicted] = await runInSteps(link, tag, args);
    // Replicas must have the new session. One of these two keys shows that a node has received it: the key of the session or, if the
    // session has ended in the meantime, the key of its marker.
    await acknowledge(tag, [`s${sid}`, `m${sid}`]);
    return {
      session: decodeSession(sid, buffer(record), 0),
      evicted: evicted.map(sessionId),
      replaced: endedElsewhere || (replaced !== undefined && replaced.length > 0),
      newDevice: newDevice !== undefined && newDevice.length > 0,
    };
  };
}

/** Runs lua/create.lua until it has created the session. Returns its last reply, with the ids of all sessions that were ended. */
async function runInSteps(link: Pick<Link, "run">, tag: string, args: Arguments): Promise<readonly Buffer[]> {
  const [, subject = ""] = args;
  const earlier: Buffer[] = [];
  let newDevice: Buffer | undefined;
  for (;;) {
    const [record = Buffer.alloc(0), replaced = record, isNew = record, ...ended] = buffers(
      await link.run("create", [tag], args),
    );
    switch (text(record)) {
      case "sweep":
        await sweep(link, tag, subject);
        break;
      case "again":
        if (ended.length > 0) newDevice ??= isNew;
        earlier.push(...ended);
        break;
      default:
        return [record, replaced, newDevice ?? isNew, ...earlier, ...ended];
    }
  }
}

/** Runs lua/sweep.lua until it has found expired sessions or has reached the end of the subject's sessions. */
async function sweep(link: Pick<Link, "run">, tag: string, subject: Arguments[number]): Promise<void> {
  let after: Arguments[number] = "";
  let least: Arguments[number] = NEVER;
  do {
    const [next, soonest] = buffers(await link.run("sweep", [tag], [subject, after, least]));
    [after, least] = [next ?? "", soonest ?? NEVER];
  } while (after.length > 0);
}
