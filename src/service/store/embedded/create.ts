/** Creates a session, in several transactions if its subject has many (limits.ts). Other work runs in between. */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { NewSession, Session } from "../../session/model.ts";
import type { CreateOptions, CreateOutcome, EndedSession, SessionStore } from "../../session/ports.ts";
import { firstState, type RotationState } from "../../session/rotation/rotation.ts";
import { later, latest, type StoreMs } from "../../session/time.ts";
import { noteOf } from "../event-text.ts";
import { type EndingDeps, lastLogout } from "./end-many.ts";
import type { DueSteps } from "./events.ts";
import { applyCap, applyLimit, ENOUGH, FEW, type LimitProgress } from "./limits.ts";
import type { Reservations } from "./reservations.ts";
import { rotationOf, sessionOf } from "./rows.ts";
import type { Transactions } from "./transactions.ts";

export type CreationDeps = EndingDeps &
  Transactions & {
    readonly reservations: Reservations;
    readonly due: Pick<DueSteps, "leaveCreated">;
  };

type Wanted = CreateOptions & { readonly session: NewSession; readonly childNonce: string };

/** What the transactions of a creation have found and done. */
type Progress = {
  readonly evicted: readonly EndedSession[];
  readonly replaced: EndedSession | undefined;
  /** Undefined before the first transaction. Those that follow may have ended the only session of the same device. */
  readonly newDevice: boolean | undefined;
  /** The place at which the next transaction continues to count for the limit; undefined if it counts from the start. */
  readonly counted: LimitProgress | undefined;
};

const NOTHING: Progress = { evicted: [], replaced: undefined, newDevice: undefined, counted: undefined };

export function createCreation(deps: CreationDeps): Pick<SessionStore, "create"> {
  return {
    async create(session, childNonce, options) {
      const wanted = { ...options, session, childNonce };
      let progress = NOTHING;
      for (;;) {
        const step = deps.write("FULL", (now) => createStep(deps, wanted, progress, now));
        if ("ok" in step) return step;
        progress = step;
        await nextTurn();
      }
    },
  };
}

/** Creates the session, if this transaction is enough for it. Otherwise only makes some of the room for it, and returns the progress. */
function createStep(deps: CreationDeps, wanted: Wanted, before: Progress, now: StoreMs): CreateOutcome | Progress {
  const { sql, sessions, reservations, due, signals, end } = deps;
  const { session, childNonce, cap, limit, replaces, origin, reservedMs } = wanted;
  const { sid, subject } = session;
  const row = sessions.get(sid);
  const isStored = row !== undefined && now < row.idle_expires_at;
  if (reservedMs !== undefined && (isStored ? row.ended > 0 : reservations.has(sid, now)))
    return { ok: false, reason: "ended" };
  // An earlier call, or an earlier attempt of this one, has created it.
  if (isStored) return createdOutcome(sessionOf(row), rotationOf(row), reservedMs === undefined, before);
  if (row !== undefined) sql.remove.run(sid); // It has expired, and its reservation is over.

  const newDevice = before.newDevice ?? (reservedMs === undefined && isNewDevice(deps, session, now));
  const note = noteOf(origin);
  const old = replaces && sessions.live(replaces, now);
  // Once the session to replace has ended, the limit does not count: the new session takes its place.
  const isLimited = limit !== undefined && before.replaced === undefined;
  const underLimit = isLimited
    ? applyLimit(deps, limit, { session, replaced: old && sessionOf(old), counted: before.counted, note }, now)
    : ENOUGH;
  if ("ok" in underLimit) return underLimit;
  const evicted = [...before.evicted, ...underLimit.evicted];
  if (!underLimit.isEnough) return { ...before, newDevice, evicted, counted: underLimit.counted };

  const replaced = old ? end(old.sid, "replaced", now, note, old.subject) : before.replaced;
  const logout = lastLogout(deps, subject, now);
  const underCap = applyCap(deps, session, cap, logout, now, note);
  const after = { evicted: [...evicted, ...underCap.evicted], replaced, newDevice, counted: undefined };
  if (!underCap.isEnough) return after;

  const created = sessions.insert(session, childNonce, latest(now, later(logout.endedUntil, 1)));
  due.leaveCreated(session, origin, now, newDevice);
  signals.appendCreated(created, newDevice, now);
  if (reservedMs !== undefined) reservations.add(sid, later(now, reservedMs), now);
  return createdOutcome(created, firstState(childNonce), true, after);
}

/** Returns whether none of the subject's live sessions, of the newest `FEW`, has this user agent. */
function isNewDevice({ sql }: EndingDeps, { subject, client }: NewSession, now: StoreMs): boolean {
  return client.userAgent !== "" && sql.hasAgent.get(subject, now, FEW, client.userAgent) === undefined;
}

function createdOutcome(
  session: Session,
  rotation: RotationState,
  isNew: boolean,
  { evicted, replaced, newDevice = false }: Progress,
): CreateOutcome {
  return { ok: true, isNew, session, rotation, evicted, replaced, newDevice };
}
