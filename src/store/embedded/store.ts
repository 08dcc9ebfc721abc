/**
 * The store that needs no server: one SQLite file, for one machine.
 *
 * Each method runs one transaction within one turn of the event loop. It waits at most for the lock of another process, so no change
 * happens after its caller has given up. Creating and ending are on disk (fsync) before they are acknowledged. Refreshes are written
 * without waiting for the disk. If the process is killed, no refresh is lost. A power cut may lose the last refreshes; rule 3 of
 * session/rotation.ts handles that.
 */
import type { DatabaseSync } from "node:sqlite";
import type { Revocation } from "../../session/model.ts";
import { StoreUnavailable } from "../../session/ports.ts";
import { DEFAULT_RETENTION_MS, type StoreWithSignals } from "../../signals/ports.ts";
import { REUSE_NOTES } from "../due-text.ts";
import { watchChanges } from "./changes.ts";
import { createStoreClock } from "./clock.ts";
import { createEndings } from "./endings.ts";
import { createDueSteps, createEvents } from "./events.ts";
import { FileGuard } from "./file-guard.ts";
import { createLists } from "./lists.ts";
import { createLog } from "./log.ts";
import type { EmbeddedStoreOptions } from "./options.ts";
import { openDatabase, whenUnlocked } from "./schema.ts";
import { createSessionSteps } from "./session-steps.ts";
import { createSessionTable } from "./session-table.ts";
import { createSignalSteps } from "./signal-steps.ts";
import { createSignals } from "./signals.ts";
import { prepareStatements } from "./statements.ts";
import type { EndStep } from "./subject-steps.ts";
import { createResumption, createSubjects, finishEndOf } from "./subjects.ts";
import { createTransactions, type Transactions } from "./transactions.ts";

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
  const { read } = transactions;
  const sessions = createSessionTable(sql);
  const log = createLog(sql, options.markerLifeMs);
  const due = createDueSteps(sql);
  const signals = createSignalSteps(sql, options.signalsRetentionMs ?? DEFAULT_RETENTION_MS);
  const wakers = watchChanges(sql);

  /**
   * The entries of the revocation log that the running transaction has appended. Listeners get them when the transaction is committed.
   */
  let appended: Revocation[] = [];
  const write: Transactions["write"] = (durability, step) => {
    appended = [];
    const result = transactions.write(durability, step);
    if (appended.length > 0) wakers.wake(appended);
    return result;
  };
  const end: EndStep = (sid, reason, now, note, subject) => {
    signals.append(sid, reason, now, subject);
    sql.remove.run(sid);
    due.leaveEnded(sid, reason, note, subject, now);
    appended.push(log.append(sid, reason, now));
  };

  const parts = { sql, sessions, log, due, signals, read, write, end };
  const subjects = { ...parts, endedWithAll: signals.appendEndOfAll, leaveCreated: due.leaveCreated };
  const resume = createResumption(subjects);
  return {
    ...createEvents(sql, transactions),
    ...createLists(sql, transactions, sessions),
    ...createSessionSteps({
      ...parts,
      reuseIntervalMs: options.reuseIntervalMs,
      endReused: (sid, subject, reason, now) => end(sid, "reuse", now, REUSE_NOTES[reason], subject),
    }),
    ...createSubjects(subjects),
    ...createEndings({ ...parts, finishEndOf: (sid) => finishEndOf(subjects, sid), wake: () => wakers.wake([]) }),
    signals: createSignals(sql, signals, transactions),

    async revocations(cursor) {
      const batch = read(log.readAfter(cursor));
      resume();
      return batch;
    },
    onRevocation: (wake) => wakers.add(wake),
    now: () => clock.read(),
    shiftMs: () => clock.shiftMs,
    async ping() {
      files.check();
      write("NORMAL", () => sql.touch.run()); // A full disk is noticed only by a real write.
    },
    async close() {
      wakers.close();
      if (db.isOpen) db.close();
    },
  };
}
