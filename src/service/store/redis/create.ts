/** Creates a session in one run of a script. A subject with many sessions takes several runs, because each run does limited work. */
import { loginsOf, type SessionId } from "../../session/model.ts";
import type { CreateOutcome, EndOwnedOutcome, SessionStore } from "../../session/ports.ts";
import { noteOf } from "../event-text.ts";
import type { ArgumentsOf } from "./arguments.ts";
import type { Link } from "./link.ts";
import { tagOfSession, tagOfSubject } from "./partitions.ts";
import { decodeRotation, decodeSession, encodeBody, nonceWords, versionOf } from "./record.ts";
import type { Acknowledge } from "./replicas.ts";
import { buffers, endedSessions, listed, text } from "./replies.ts";
import { nameOf } from "./upstream.ts";

/** What lua/create.lua returns in place of a replaced session if an earlier run has created this one. */
const EXISTING = "existing";
const EMPTY = Buffer.alloc(0);

/** A time, in ms, that is later than the expiry of every session. */
const NEVER = 2 ** 48;

export function createCreation(
  link: Pick<Link, "run">,
  acknowledge: Acknowledge,
  markerLifeMs: number,
  endOwned: SessionStore["endOwned"],
): Pick<SessionStore, "create"> {
  return {
    async create(session, childNonce, { cap, limit, replaces, origin, claimMs }) {
      const { sid, subject, idleTimeoutMs, absoluteLifetimeMs } = session;
      const tag = tagOfSession(sid);
      if (tag !== tagOfSubject(subject)) throw new TypeError("a session id outside its subject's partition");
      // A session to replace in another partition has another subject, and a separate script ends it before the creation. If the creation
      // then fails, there is one session too few, which is better than one too many. With a limit that may refuse, the order is reversed.
      const elsewhere = replaces !== undefined && tagOfSession(replaces) !== tag;
      const endElsewhere = async () => (elsewhere ? endOwned(replaces, replaces, "replaced", origin) : undefined);
      const mayRefuse = limit?.whenExceeded === "refuse";
      const endedBefore = mayRefuse ? undefined : await endElsewhere();
      const old = elsewhere ? "" : (replaces ?? "");
      const limitText = limit === undefined ? "" : `${limit.scope} ${limit.maxSessions} ${limit.whenExceeded}`;
      const logins = session.upstream === undefined ? "" : loginsOf(session.upstream).map(nameOf).join("");
      const [child1, child2] = nonceWords(childNonce);
      const steps = await runInSteps(link, tag, subject, (progress) => [
        ...([sid, subject, child1, child2, idleTimeoutMs, absoluteLifetimeMs, encodeBody(session), cap] as const),
        ...([markerLifeMs, old, versionOf(session), noteOf(origin), noteOf(origin, session)] as const),
        ...([limitText, claimMs ?? "", logins, progress] as const),
      ]);
      if (!steps.ok) return steps;
      const { isNew, record, replaced, newDevice, ended } = steps;
      // Replicas must have the new session. One of these two keys shows that a node has received it: the key of the session or, if the
      // session has ended in the meantime, the key of its marker.
      await acknowledge(tag, [`s${sid}`, `m${sid}`]);
      const endedElsewhere = mayRefuse ? await endElsewhere() : endedBefore;
      return {
        ok: true,
        isNew,
        session: decodeSession(sid, record, 0),
        rotation: decodeRotation(record, 0),
        ...endedFor(replaces, endedElsewhere, replaced, ended),
        newDevice,
      };
    },
  };
}

/** Returns which sessions have ended for a new one. @param elsewhere the outcome for a session to replace that is in another partition */
function endedFor(
  replaces: SessionId | undefined,
  elsewhere: EndOwnedOutcome | undefined,
  replaced: Buffer | undefined,
  others: readonly Buffer[],
) {
  const actors = new Map(endedSessions(replaced === undefined ? others : [replaced, ...others]).actors);
  if (replaces !== undefined && elsewhere?.ok && elsewhere.actor !== undefined) {
    actors.set(replaces, elsewhere.actor);
  }
  return {
    evicted: endedSessions(others).ended,
    replaced: elsewhere?.ok === true || replaced !== undefined,
    ...(actors.size > 0 && { actors }),
  };
}

type CreateSteps =
  | {
      readonly ok: true;
      readonly record: Buffer;
      readonly isNew: boolean;
      readonly newDevice: boolean;
      /** The session to replace, if it has ended. */
      readonly replaced: Buffer | undefined;
      /** The ids of the sessions that a limit has ended, each followed by its actor. */
      readonly ended: readonly Buffer[];
    }
  | Extract<CreateOutcome, { readonly ok: false }>;

/** Runs lua/create.lua until it has created the session, or has found that it may not. */
async function runInSteps(
  link: Pick<Link, "run">,
  tag: string,
  subject: string,
  argumentsOf: (progress: Buffer | "") => ArgumentsOf<"create">,
): Promise<CreateSteps> {
  const ended: Buffer[] = [];
  let newDevice: boolean | undefined;
  let progress: Buffer | "" = "";
  for (;;) {
    const [first = EMPTY, ...rest] = buffers(await link.run("create", [tag], argumentsOf(progress)));
    const result = text(first);
    if (result === "ended") return { ok: false, reason: "ended" };
    if (result === "refused") return { ok: false, reason: "refused", live: listed(rest.slice(2)) };
    if (result === "more") {
      progress = rest[0] ?? "";
      continue;
    }
    const [replaced = EMPTY, device = EMPTY, ...endedNow] = rest;
    // A run that ends sessions may end the only one of the same device, so what the first of them has found counts.
    if (endedNow.length > 0) newDevice ??= device.length > 0;
    ended.push(...endedNow);
    if (result === "sweep") await sweep(link, tag, subject);
    else if (result === "again") progress = "";
    else {
      const isNew = text(replaced) !== EXISTING;
      return {
        ok: true,
        isNew,
        record: first,
        replaced: isNew && replaced.length > 0 ? replaced : undefined,
        newDevice: newDevice ?? device.length > 0,
        ended,
      };
    }
  }
}

/** Runs lua/sweep.lua until it has found expired sessions or has reached the end of the subject's sessions. */
async function sweep(link: Pick<Link, "run">, tag: string, subject: string): Promise<void> {
  let after: Buffer | "" = "";
  let least: Buffer | number = NEVER;
  do {
    const [next, soonest] = buffers(await link.run("sweep", [tag], [subject, after, least]));
    [after, least] = [next ?? "", soonest ?? NEVER];
  } while (after.length > 0);
}
