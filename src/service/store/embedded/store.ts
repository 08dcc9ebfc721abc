/**
 * The store that needs no server: one SQLite file, for one machine.
 *
 * A transaction never spans two turns of the event loop, and the refreshes of a turn share one. Creations, bulk endings and the removal of
 * a subject's data may take several (create.ts, end-many.ts, forget.ts); a refresh that ends a session takes two. A transaction waits at
 * most for the lock of another process, so no change happens after its caller has given up. Creating and ending are on disk (fsync) before
 * they are acknowledged. Refreshes are written without waiting for the disk. If the process is killed, no refresh is lost. A power cut may
 * lose the last refreshes. The rotation then still accepts the newer tokens that clients hold (the outcome `heal` in
 * session/rotation/rotation.ts).
 */
import type { DatabaseSync } from "node:sqlite";
import { type Clock, StoreUnavailable } from "../../session/ports.ts";
import type { WallClock } from "../../session/time.ts";
import { DEFAULT_RETENTION_MS, type StoreWithSignals } from "../../signals/ports.ts";
import { noteWithActor } from "../event-text.ts";
import { createResumption } from "../resumption.ts";
import { createWakers, type Wakers } from "../wakers.ts";
import { createAttached } from "./attached.ts";
import { createStoreClock } from "./clock.ts";
import { createCreation } from "./create.ts";
import { createEndMany, type EndStep, finishEnd } from "./end-many.ts";
import { createEndings } from "./endings.ts";
import { createDueSteps, createEvents } from "./events.ts";
import { createForgetting } from "./forget.ts";
import { createLists } from "./lists.ts";
import { createLog } from "./log.ts";
import { createReservations } from "./reservations.ts";
import { createSessionRows } from "./rows.ts";
import { openDatabase, whenUnlocked } from "./schema.ts";
import { createSessionSteps } from "./session-steps.ts";
import { createSignalSteps } from "./signal-steps.ts";
import { createSignals } from "./signals.ts";
import { prepareStatements, type Statements } from "./statements.ts";
import { createTransactions, FileGuard } from "./transactions.ts";
import { createUpstream } from "./upstream.ts";
import { createWrites } from "./writes.ts";

type EmbeddedStoreOptions = {
  /** The database file. Its directory is created (0700) if it does not exist. */
  readonly path: string;
  readonly clock: WallClock;
  /** A monotonic clock, in ms. Default: the monotonic clock of the process; tests replace it. */
  readonly steady?: Clock;
  /** The reuse interval of refresh tokens (`R` in session/rotation/rotation.ts), in ms. */
  readonly reuseIntervalMs: number;
  /** How long an ended session is remembered, in ms. It is at least the longest life of an access token. */
  readonly markerLifeMs: number;
  /** How long the signal log keeps signals that a subscription has not read, in ms. Default: a day. */
  readonly signalsRetentionMs?: number;
};

/** @throws StoreUnavailable when the file cannot be opened, is corrupt, or was made by a newer version */
export function createEmbeddedStore(options: EmbeddedStoreOptions): StoreWithSignals {
  try {
    return whenUnlocked(() => openDatabase(options.path, (db) => composeStore(db, options)));
  } catch (cause) {
    const fault = cause instanceof Error ? cause.message : String(cause);
    throw new StoreUnavailable(`cannot open ${options.path}: ${fault}`, { cause });
  }
}

function composeStore(db: DatabaseSync, options: EmbeddedStoreOptions): StoreWithSignals {
  const clock = createStoreClock(db, options.clock, options.steady);
  const sql = prepareStatements(db);
  const files = new FileGuard(options.path);
  const sessions = createSessionRows(sql);
  const log = createLog(sql, options.markerLifeMs);
  const due = createDueSteps(sql);
  const signals = createSignalSteps(sql, sessions, options.signalsRetentionMs ?? DEFAULT_RETENTION_MS);
  const wakers = watchChanges(sql);
  const handOvers = createWakers();

  const transactions = createTransactions(db, clock, files);
  const writes = createWrites(transactions, wakers, handOvers);
  const end: EndStep = (sid, reason, now, note, subject) => {
    writes.handOver(sql.handOver.run(sid));
    const actor = sessions.actorOf(sid);
    signals.append(sid, reason, now, subject);
    sql.remove.run(sid);
    due.leaveEnded(sid, reason, noteWithActor(note, actor), subject, now);
    writes.publish(log.append(sid, reason, now));
    return { sid, actor };
  };

  const parts = {
    ...transactions,
    ...writes,
    sql,
    sessions,
    log,
    due,
    signals,
    end,
    reservations: createReservations(db),
  };
  const { read, write, alone } = parts;
  const resume = createResumption((id) => finishEnd(parts, id));
  return {
    ...createEvents(parts),
    ...createLists(parts),
    ...createUpstream(parts),
    ...createSessionSteps({ ...parts, reuseIntervalMs: options.reuseIntervalMs }),
    ...createCreation(parts),
    ...createEndMany(parts),
    ...createEndings({ ...parts, wakers }),
    ...createAttached(parts),
    onAttachedEnd: (wake) => handOvers.add(wake),
    forget: createForgetting({ ...parts, db, path: options.path }),
    signals: createSignals(parts),

    async revocations(cursor) {
      const batch = read(log.readAfter(cursor));
      resume(new Map(sql.endsUnderWay.all().map(({ id, count }) => [String(id), String(count)])));
      return batch;
    },
    onRevocation: (wake) => wakers.add(wake),
    now: clock.read,
    shiftMs: clock.shiftMs,
    async ping() {
      files.check();
      write("NORMAL", () => sql.touch.run()); // A full disk is noticed only by a real write.
    },
    async close() {
      wakers.close();
      if (db.isOpen) alone(() => db.close());
    },
  };
}

/** How often the file is checked for writes of other processes, in ms. */
const POLL_INTERVAL_MS = 100;

/** Notices that another process has changed the database file. It checks only while there are listeners. */
function watchChanges(sql: Statements): Wakers & { close(): void } {
  let poll: NodeJS.Timeout | undefined;
  /** Returns a number that changes with every commit of another process. A failed read counts as a change, since NaN equals nothing. */
  const version = (): unknown => {
    try {
      return sql.dataVersion.get()?.data_version;
    } catch {
      return Number.NaN;
    }
  };
  const start = () => {
    let seen: unknown;
    poll = setInterval(() => {
      const current = version();
      if (current !== seen) wakers.wake([]);
      seen = current;
    }, POLL_INTERVAL_MS).unref();
  };
  const stop = () => clearInterval(poll);
  const wakers = createWakers(start, stop);
  return { ...wakers, close: stop };
}
