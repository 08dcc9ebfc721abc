/** Creates a session, in several transactions if its subject has many (subject-steps.ts). Other work runs in between. */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { SessionLimit } from "../../session/admin/limit.ts";
import type { SessionId } from "../../session/model.ts";
import type { CreateOnceOutcome, CreateWithinOutcome, SessionStore } from "../../session/ports.ts";
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

export function createCreation(deps: CreationDeps): Pick<SessionStore, "create" | "createWithin" | "createOnce"> {
  const { sessions, claims } = deps;
  return {
    async create(...given) {
      const created = await createWithin(deps, undefined, undefined, ...given);
      if (!created.ok) throw new TypeError("a session was refused without a limit");
      const { ok, ...outcome } = created;
      return outcome;
    },
    createWithin: (limit, ...given) => createWithin(deps, undefined, limit, ...given),

    async createOnce(claimMs, limit, session, childNonce, cap, origin) {
      const { sid } = session;
      const claim: Claim<CreateOnceOutcome> = {
        find(now) {
          const row = sessions.live(sid, now);
          if (row === undefined) return claims.has(sid, now) ? { ok: false, reason: "ended" } : undefined;
          const found = { session: sessionOf(row), rotation: rotationOf(row), evicted: [] };
          return { ok: true, isNew: false, ...found };
        },
        add: (now) => claims.add(sid, later(now, claimMs), now),
      };
      const created = await createWithin(deps, claim, limit, session, childNonce, cap, undefined, origin);
      if (!created.ok || "isNew" in created) return created;
      const { replaced, newDevice, ...outcome } = created;
      return { ...outcome, isNew: true, rotation: firstState(childNonce) };
    },
  };
}

/** A claim of the session's id. */
type Claim<Found> = {
  /** Returns what an earlier call has left; undefined if there was none. */
  find(now: StoreMs): Found | undefined;
  add(now: StoreMs): void;
};

async function createWithin<Found extends object = never>(
  deps: CreationDeps,
  claim: Claim<Found> | undefined,
  limit: SessionLimit | undefined,
  ...[session, childNonce, cap, replaces, origin]: Parameters<SessionStore["create"]>
): Promise<CreateWithinOutcome | Found> {
  const { sql, sessions, due, signals, write } = deps;
  const { end, actors } = notingActors(deps.end);
  const noting = { ...deps, end };
  const note = noteOf(origin);
  const evicted: SessionId[] = [];
  let replaced = false;
  let newDevice: boolean | undefined;
  let progress: LimitProgress | undefined;

  type Taken = CreateStep | Exclude<LimitStep, { readonly state: "within" }> | { state: "found"; found: Found };
  const step = (now: StoreMs): Taken => {
    const found = claim?.find(now);
    if (found !== undefined) return { state: "found", found };
    const existing = sessions.get(session.sid);
    if (existing !== undefined) {
      // An earlier attempt of this call has created it.
      if (now < existing.idle_expires_at) return { state: "created", session: sessionOf(existing), evicted: [] };
      sql.remove.run(session.sid); // It has expired, and its claim is over.
    }
    newDevice ??= claim === undefined && isNewDevice(deps, session, now);
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
      claim?.add(now);
    }
    return created;
  };

  for (;;) {
    const taken = write("FULL", step);
    if (taken.state === "found") return taken.found;
    if (taken.state === "refused") return { ok: false, reason: "refused", live: taken.live };
    if ("evicted" in taken) evicted.push(...taken.evicted);
    if (taken.state === "created") {
      const found = { evicted, replaced, newDevice: newDevice === true, ...withActors(actors) };
      return { ok: true, session: taken.session, ...found };
    }
    progress = taken.state === "more" ? taken.progress : undefined;
    await nextTurn();
  }
}
