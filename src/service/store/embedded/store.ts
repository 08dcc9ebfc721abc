/**
 * The store that needs no server: one SQLite file, for one machine.
 *
 * Each method runs one transaction within one turn of the event loop, and the refreshes of a turn share one. A transaction waits at most
 * for the lock of another process, so no change happens after its caller has given up. Creating and ending are on disk (fsync) before
 * they are acknowledged. Refreshes are written without waiting for the disk. If the process is killed, no refresh is lost. A power cut may
 * lose the last refreshes. The rotation then still accepts the newer tokens that clients hold (the outcome `heal` in session/rotation/rotation.ts).
 */
import type { DatabaseSync, StatementResultingChanges } from "node:sqlite";
import type { LogEntry } from "../../session/model.ts";
import { type Clock, StoreUnavailable } from "../../session/ports.ts";
import type { WallClock } from "../../session/time.ts";
import { DEFAULT_RETENTION_MS, type StoreWithSignals } from "../../signals/ports.ts";
import { noteWithActor, REUSE_NOTES } from "../event-text.ts";
import { createResumption } from "../resumption.ts";
import { createWakers, type Wakers } from "../wakers.ts";
import { createAttached } from "./attached.ts";
import { createClaims } from "./claims.ts";
import { createStoreClock } from "./clock.ts";
import { createCreation } from "./create.ts";
import { createEndings } from "./endings.ts";
import { createDueSteps, createEvents } from "./events.ts";
import { createForgetting } from "./forget.ts";
import { createLists } from "./lists.ts";
import { createLog } from "./log.ts";
import { createSessionTable } from "./rows.ts";
import { openDatabase, whenUnlocked } from "./schema.ts";
import { createSessionSteps } from "./session-steps.ts";
import { createSignalSteps } from "./signal-steps.ts";
import { createSignals } from "./signals.ts";
import { prepareStatements, type Statements } from "./statements.ts";
import { createSubjects, type EndStep, finishEnd, finishEndOf } from "./subjects.ts";
import { createTransactions, FileGuard, type Transactions } from "./transactions.ts";
import { createUpdates } from "./updates.ts";
import { createUpstream } from "./upstream.ts";

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
  const transactions = createTransactions(db, clock, files);
  const { read, share, alone } = transactions;
  const sessions = createSessionTable(sql);
  const log = createLog(sql, options.markerLifeMs);
  const due = createDueSteps(sql);
  const signals = createSignalSteps(sql, sessions, options.signalsRetentionMs ?? DEFAULT_RETENTION_MS);
  const wakers = watchChanges(sql);
  const handOvers = createWakers();

  const { write, publish, handOver } = createWrites(transactions, wakers, handOvers);
  const end: EndStep = (sid, reason, now, note, subject) => {
    handOver(sql.handOver.run(sid));
    const actor = sessions.actorOf(sid);
    signals.append(sid, reason, now, subject);
    sql.remove.run(sid);
    due.leaveEnded(sid, reason, noteWithActor(note, actor), subject, now);
    publish(log.append(sid, reason, now));
    return { sid, actor };
  };

  const parts = { sql, sessions, log, due, signals, read, write, share, alone, end };
  const claims = createClaims(db);
  const subjects = { ...parts, claims };
  const resume = createResumption((end) => finishEnd(subjects, end.slice(0, end.indexOf(" "))));
  return {
    ...createEvents(sql, transactions, sessions),
    ...createLists(sql, transactions, sessions),
    ...createUpstream(sql, transactions, claims),
    ...createSessionSteps({
      ...parts,
      reuseIntervalMs: options.reuseIntervalMs,
      endReused: (sid, subject, reason, now) => end(sid, "reuse", now, REUSE_NOTES[reason], subject),
    }),
    ...createUpdates({
      ...parts,
      markStale: (sid, version, now) => publish(log.appendMark(sid, version, now)),
    }),
    ...createCreation(subjects),
    ...createSubjects(subjects),
    forget: createForgetting({ ...subjects, db, path: options.path }),
    ...createEndings({
      ...parts,
      wakers,
      handOverAll: (createdUntil) => handOver(sql.handOverAll.run(createdUntil)),
      finishEndOf: (sid) => finishEndOf(subjects, sid),
    }),
    ...createAttached(parts),
    onAttachedEnd: (wake) => handOvers.add(wake),
    signals: createSignals(sql, signals, transactions),

    async revocations(cursor) {
      const batch = read(log.readAfter(cursor));
      resume(sql.endsUnderWay.all().map(({ id, count }) => `${id} ${count}`));
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

/**
 * Returns a `write` that calls the listeners after each commit, and what its steps call: `publish` with what they append to the log, and
 * `handOver` with the result of a statement that notes that sessions have to end because those of their actors have.
 */
function createWrites(transactions: Transactions, wakers: Wakers, handOvers: Wakers) {
  let appended: LogEntry[] = [];
  let isHandedOver = false;
  const write: Transactions["write"] = (durability, step) => {
    appended = [];
    isHandedOver = false;
    const result = transactions.write(durability, step);
    if (appended.length > 0) wakers.wake(appended);
    if (isHandedOver) handOvers.wake([]);
    return result;
  };
  return {
    write,
    publish: (entry: LogEntry) => void appended.push(entry),
    handOver: ({ changes }: Pick<StatementResultingChanges, "changes">) => {
      isHandedOver ||= changes > 0;
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
