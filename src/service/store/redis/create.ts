/** Creates a session in one run of a script. A subject with many sessions takes several runs, because each run does limited work. */
import type { SessionLimit } from "../../session/admin/limit.ts";
import { loginsOf } from "../../session/model.ts";
import type { CreateOutcome, EndedSession, SessionStore } from "../../session/ports.ts";
import { noteOf } from "../event-text.ts";
import type { ArgumentsOf } from "./encoding/arguments.ts";
import { decodeRotation, decodeSession, encodeBody, flagsOf, nonceWords } from "./encoding/record.ts";
import { buffers, endedSession, listed, text } from "./encoding/replies.ts";
import { KEY } from "./keys.ts";
import { tagOfSession, tagOfSubject } from "./partitions.ts";
import type { Acknowledge } from "./replicas.ts";
import type { ScriptRunner } from "./script-runner.ts";
import { loginNameOf } from "./upstream.ts";

const EMPTY = Buffer.alloc(0);

/** A time, in ms, that is later than the expiry of every session. */
const NEVER = 2 ** 48;

export function createCreation(
  runner: Pick<ScriptRunner, "run">,
  acknowledge: Acknowledge,
  markerLifeMs: number,
  endOwned: SessionStore["endOwned"],
): Pick<SessionStore, "create"> {
  return {
    async create(session, childNonce, { cap, limit, replaces, origin, reservedMs }) {
      const { sid, subject } = session;
      const tag = tagOfSession(sid);
      if (tag !== tagOfSubject(subject)) throw new TypeError("a session id outside its subject's partition");
      // If the session to replace is in another partition, it has another subject, and a separate script ends it. That script runs before
      // the creation: if the creation then fails, there is one session too few, which is better than one too many. If a limit may refuse
      // the new session, the script runs after the creation.
      const elsewhere = replaces !== undefined && tagOfSession(replaces) !== tag ? replaces : undefined;
      const endElsewhere = async (): Promise<EndedSession | undefined> => {
        if (elsewhere === undefined) return undefined;
        // Only if it is live: `end` would also mark and log it otherwise.
        const outcome = await endOwned(elsewhere, elsewhere, "replaced", origin);
        return outcome.ok ? { sid: elsewhere, actor: outcome.actor } : undefined;
      };
      const mayRefuse = limit?.whenExceeded === "refuse";
      const endedBefore = mayRefuse ? undefined : await endElsewhere();
      const logins = session.upstream === undefined ? "" : loginsOf(session.upstream).map(loginNameOf).join("");
      const created = await runInSteps(runner, tag, subject, limit, (progress) => [
        sid,
        subject,
        ...nonceWords(childNonce),
        session.idleTimeoutMs,
        session.absoluteLifetimeMs,
        encodeBody(session),
        cap,
        markerLifeMs,
        elsewhere === undefined ? (replaces ?? "") : "",
        flagsOf(session),
        noteOf(origin),
        noteOf(origin, session),
        limit === undefined ? "" : `${limit.scope} ${limit.maxSessions} ${limit.whenExceeded}`,
        reservedMs ?? "",
        logins,
        progress,
      ]);
      if (!created.ok) return created;
      const { isNew, record, newDevice, evicted } = created;
      // Replicas must have the new session. One of these two keys shows that a node has received it: the key of the session or, if the
      // session has ended in the meantime, the key of its marker.
      await acknowledge(tag, [KEY.session + sid, KEY.marker + sid]);
      return {
        ok: true,
        isNew,
        session: decodeSession(sid, record, 0),
        rotation: decodeRotation(record, 0),
        newDevice,
        evicted,
        replaced: created.replaced ?? (mayRefuse ? await endElsewhere() : endedBefore),
      };
    },
  };
}

/** What the runs of the script have created and ended. */
type Creation = {
  readonly ok: true;
  readonly record: Buffer;
  readonly isNew: boolean;
  readonly newDevice: boolean;
  readonly evicted: readonly EndedSession[];
  /** The session to replace, if it has ended. */
  readonly replaced: EndedSession | undefined;
};

/** Runs lua/create.lua until it has created the session, or has found that it may not. */
async function runInSteps(
  runner: Pick<ScriptRunner, "run">,
  tag: string,
  subject: string,
  limit: SessionLimit | undefined,
  argumentsOf: (progress: Buffer | "") => ArgumentsOf<"create">,
): Promise<Creation | Extract<CreateOutcome, { readonly ok: false }>> {
  const evicted: EndedSession[] = [];
  let newDevice: boolean | undefined;
  let progress: Buffer | "" = "";
  // A run that ends sessions may end the only one of the same device. So the first of these runs decides whether the device is new.
  const note = ([device = EMPTY, ...ended]: readonly Buffer[]): boolean => {
    const isNewDevice = newDevice ?? device.length > 0;
    if (ended.length > 0) newDevice = isNewDevice;
    evicted.push(...ended.map(endedSession));
    return isNewDevice;
  };
  for (;;) {
    const [outcome, ...rest] = buffers(await runner.run("create", [tag], argumentsOf(progress)));
    const [first = EMPTY, second = EMPTY, ...others] = rest;
    switch (text(outcome)) {
      case "created": {
        const replaced = second.length > 0 ? endedSession(second) : undefined;
        return { ok: true, record: first, isNew: true, newDevice: note(others), evicted, replaced };
      }
      case "existing":
        return { ok: true, record: first, isNew: false, newDevice: false, evicted, replaced: undefined };
      case "ended":
        return { ok: false, reason: "ended" };
      case "more":
        progress = first;
        continue;
      case "again":
        note(rest);
        progress = "";
        continue;
      case "sweep":
        note(rest);
        await sweep(runner, tag, subject);
        continue;
      case "refused":
        if (limit !== undefined) return { ok: false, reason: "refused", limit, live: listed(rest) };
    }
    throw new TypeError("the create script returned an unknown outcome");
  }
}

/** Runs lua/sweep.lua until it has found expired sessions or has reached the end of the subject's sessions. */
async function sweep(runner: Pick<ScriptRunner, "run">, tag: string, subject: string): Promise<void> {
  let after: Buffer | "" = "";
  let least: Buffer | number = NEVER;
  do {
    const [next, soonest] = buffers(await runner.run("sweep", [tag], [subject, after, least]));
    [after, least] = [next ?? "", soonest ?? NEVER];
  } while (after.length > 0);
}
