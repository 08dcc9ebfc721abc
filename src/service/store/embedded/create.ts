/** Creates a session, in several transactions if its subject has many (subject-steps.ts). Other work runs in between. */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { SessionId } from "../../session/model.ts";
import type { CreateOutcome, SessionStore } from "../../session/ports.ts";
import { firstState } from "../../session/rotation/rotation.ts";
import { later, type StoreMs } from "../../session/time.ts";
import { noteOf } from "../event-text.ts";
import type { Claims } from "./claims.ts";
import type { DueSteps } from "./events.ts";
import { type LimitProgress, type LimitStep, limitStep } from "./limits.ts";
import { rotationOf, sessionOf } from "./rows.ts";
import {
  type CreateStep,
  createStep,
  isNewDevice,
  notingActors,
  type SubjectDeps,
  withActors,
} from "./subject-steps.ts";
import type { Transactions } from "./transactions.ts";

export type CreationDeps = SubjectDeps &
  Transactions & {
    readonly claims: Claims;
    readonly due: Pick<DueSteps, "leaveCreated">;
  };

export function createCreation(deps: CreationDeps): Pick<SessionStore, "create"> {
  return { create: (...given) => create(deps, ...given) };
}

async function create(
  deps: CreationDeps,
  ...[session, childNonce, { cap, limit, replaces, origin, claimMs }]: Parameters<SessionStore["create"]>
): Promise<CreateOutcome> {
  const { sql, sessions, claims, due, signals, write } = deps;
  const { sid } = session;
  const { end, actors } = notingActors(deps.end);
  const noting = { ...deps, end };
  const note = noteOf(origin);
  const evicted: SessionId[] = [];
  let isNew = true;
  let rotation = firstState(childNonce);
  let replaced = false;
  let newDevice: boolean | undefined;
  let progress: LimitProgress | undefined;

  type Taken = CreateStep | Exclude<LimitStep, { readonly state: "within" }> | { readonly state: "ended" };
  const step = (now: StoreMs): Taken => {
    if (claimMs !== undefined) {
      isNew = sessions.live(sid, now) === undefined;
      if (isNew && claims.has(sid, now)) return { state: "ended" };
    }
    const existing = sessions.get(sid);
    if (existing !== undefined) {
      // An earlier call, or an earlier attempt of this one, has created it.
      if (now < existing.idle_expires_at) {
        rotation = rotationOf(existing);
        return { state: "created", session: sessionOf(existing), evicted: [] };
      }
      sql.remove.run(sid); // It has expired, and its claim is over.
    }
    newDevice ??= claimMs === undefined && isNewDevice(deps, session, now);
    const old = replaces && sessions.live(replaces, now);
    // Once the session to replace has ended, the limit does not count: the new session takes its place.
    if (limit !== undefined && !replaced) {
      const applied = limitStep(noting, limit, session, old && sessionOf(old), progress, now, note);
      if (applied.state !== "within") return applied;
      evicted.push(...applied.evicted);
    }
    if (old) {
      end(old.sid, "replaced", now, note, old.subject);
      replaced = true;
    }
    const created = createStep(noting, session, childNonce, cap, now, note);
    if (created.state === "created") {
      due.leaveCreated(session, origin, now, newDevice);
      signals.appendCreated(created.session, newDevice, now);
      if (claimMs !== undefined) claims.add(sid, later(now, claimMs), now);
    }
    return created;
  };

  for (;;) {
    const taken = write("FULL", step);
    if (taken.state === "ended") return { ok: false, reason: "ended" };
    if (taken.state === "refused") return { ok: false, reason: "refused", live: taken.live };
    if ("evicted" in taken) evicted.push(...taken.evicted);
    if (taken.state === "created") {
      const found = { evicted, replaced, newDevice: newDevice === true, ...withActors(actors) };
      return { ok: true, isNew, session: taken.session, rotation, ...found };
    }
    progress = taken.state === "more" ? taken.progress : undefined;
    await nextTurn();
  }
}
