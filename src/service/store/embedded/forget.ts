/**
 * Removes what the file has of a subject, except of its live sessions, in several transactions. Then the whole file is written anew:
 * deleted rows stay in free pages, in gaps of pages that were split, and in the -wal file. That takes about half a second for 100,000
 * sessions, in which no other call runs. Calls that wait for it at the same time share it.
 */
import { dirname, resolve } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { setImmediate as nextTurn, setTimeout as pause } from "node:timers/promises";
import type { SessionId } from "../../session/model.ts";
import { type SessionStore, StoreUnavailable } from "../../session/ports.ts";
import type { StoreMs } from "../../session/time.ts";
import type { CreationDeps } from "./create.ts";
import { finishEnd } from "./end-many.ts";
import { blankDetailsOf, type SessionRow } from "./rows.ts";

/** How many sessions one transaction changes, and of how many it removes the events. */
const AT_ONCE = 50;
/** How often, and after which pause in ms, the -wal file is emptied again while another process reads the database. */
const ATTEMPTS = 50;
const RETRY_MS = 100;

type Deps = CreationDeps & { readonly db: DatabaseSync; readonly path: string };

export function createForgetting(deps: Deps): SessionStore["forget"] {
  const { sql, write } = deps;
  let next: Promise<void> | undefined;
  const rewritten = () => {
    next ??= nextTurn().then(() => {
      next = undefined;
      return rewrite(deps);
    });
    return next;
  };
  return async (subject) => {
    for (let end = endOf(deps, subject); end !== undefined; end = endOf(deps, subject)) await finishEnd(deps, end);
    await appendSignals(deps);
    while (write("NORMAL", (now) => blankSome(deps, subject, now)) === AT_ONCE) await nextTurn();
    const events = await forgetEvents(deps, subject);
    const signals = write("FULL", (now) => {
      for (const { key } of sql.dueOf.all(subject) as { readonly key: string }[]) {
        if (!isLive(deps, key.replace(/^\+/, ""), now)) sql.takeDue.run(key);
      }
      sql.forgetEndsOf.run(subject);
      const unread = Number(sql.unreadSignalsOf.get(subject, subject)?.count);
      sql.forgetSignals.run(subject, subject);
      // A reader of the log that has one of these signals in its memory loses its lease, and reads the signal again.
      if (unread > 0) sql.changeFence.run();
      return unread;
    });
    await rewritten();
    return { events, signals };
  };
}

/** Returns the id of a logout of the subject that is under way. */
function endOf({ sql, read }: Deps, subject: string): string | undefined {
  const id = read(() => sql.endOf.get(subject)?.id);
  return id === undefined ? undefined : String(id);
}

const isLive = ({ sessions }: Deps, sid: string, now: StoreMs) => sessions.live(sid as SessionId, now) !== undefined;

/** Appends the signals of a logout of everyone that are still to be appended: they are made from rows that are about to be changed. */
async function appendSignals({ signals, read, write }: Deps): Promise<void> {
  while (read(() => signals.pending()) !== undefined) {
    write("NORMAL", () => signals.continueEndOfAll());
    await nextTurn();
  }
}

/** Removes the data of the user from sessions that have ended or expired and are still stored. Returns how many it has changed. */
function blankSome({ sql }: Deps, subject: string, now: StoreMs): number {
  const rows = sql.endedOf.all(subject, now, AT_ONCE) as SessionRow[];
  for (const row of rows) sql.blank.run(blankDetailsOf(row), row.sid);
  return rows.length;
}

async function forgetEvents(deps: Deps, subject: string): Promise<number> {
  const { sql, write } = deps;
  let removed = 0;
  for (let after: string | undefined = ""; after !== undefined; ) {
    const from: string = after;
    after = write("NORMAL", (now) => {
      const rows = sql.eventSessionsOf.all(subject, from, AT_ONCE) as { readonly sid: string }[];
      for (const { sid } of rows) if (!isLive(deps, sid, now)) removed += Number(sql.forgetEvents.run(sid).changes);
      return rows.length === AT_ONCE ? rows.at(-1)?.sid : undefined;
    });
    await nextTurn();
  }
  return removed;
}

/** Writes the file anew, and empties the -wal file. @throws StoreUnavailable if another process reads the database all the time */
async function rewrite({ db, path, alone }: Deps): Promise<void> {
  alone(() => {
    // SQLite keeps its copy beside the file: a container may have no other directory that it can write to. SQLite removes the copy.
    db.exec(`PRAGMA temp_store_directory = '${dirname(resolve(path)).replaceAll("'", "''")}'`);
    db.exec("VACUUM");
  });
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    if (alone(() => db.prepare("PRAGMA wal_checkpoint(TRUNCATE)").get()?.busy) === 0) return;
    await pause(RETRY_MS);
  }
  throw new StoreUnavailable("embedded store: another process reads the file, so that its old pages stay");
}
