import { setImmediate as nextTurn } from "node:timers/promises";
import type { SessionStore } from "../../session/ports.ts";
import { search } from "../search.ts";
import type { SessionRows } from "./rows.ts";
import type { Statements } from "./statements.ts";
import type { Transactions } from "./transactions.ts";

/** How many rows are counted in one turn of the event loop: some 0.1 ms. */
const ROWS_PER_COUNT = 250;

type Deps = Transactions & { readonly sql: Statements; readonly sessions: SessionRows };

export function createLists({ sql, sessions, read }: Deps): Pick<SessionStore, "list" | "listAll" | "count"> {
  return {
    list: (subject, ...page) =>
      search(async (after, count) => read((now) => sessions.page(subject, after, count, now)), ...page),
    listAll: (...page) =>
      search(async (after, count) => read((now) => sessions.byCreation(after, count, now)), ...page),

    /** Counts all live sessions, in many turns of the event loop so that other work is not delayed. */
    async count() {
      const { first, last } = read(() => sql.rowRange.get()) ?? {};
      let count = 0;
      for (let at = Number(first ?? 0); at <= Number(last ?? -1); at += ROWS_PER_COUNT) {
        count += Number(read((now) => sql.countRows.get(at, at + ROWS_PER_COUNT - 1, now))?.count);
        await nextTurn();
      }
      return count;
    },
  };
}
