/** Lists sessions page by page: those of a subject, or all. */
import { setImmediate as nextTurn } from "node:timers/promises";
import { EVERY_SESSION, type SessionFilter } from "../../session/filter.ts";
import type { SessionPage } from "../../session/ports.ts";
import type { StoreMs } from "../../session/time.ts";
import type { PagePosition } from "../page.ts";
import { type Candidate, search, startOf } from "../search.ts";
import type { SessionTable } from "./session-table.ts";
import type { Transactions } from "./transactions.ts";

/** How many rows are counted in one turn of the event loop: some 0.1 ms. */
const ROWS_PER_COUNT = 250;

export class SessionLists {
  readonly #transactions: Transactions;
  readonly #sessions: SessionTable;

  constructor(transactions: Transactions, sessions: SessionTable) {
    this.#transactions = transactions;
    this.#sessions = sessions;
  }

  ofSubject(
    subject: string,
    limit: number,
    from: string | undefined,
    filter: SessionFilter = EVERY_SESSION,
  ): Promise<SessionPage> {
    return this.#search(limit, from, filter, (...given) => this.#sessions.page(subject, ...given));
  }

  ofAll(limit: number, from: string | undefined, filter: SessionFilter): Promise<SessionPage> {
    return this.#search(limit, from, filter, (...given) => this.#sessions.byCreation(...given));
  }

  async #search(
    limit: number,
    from: string | undefined,
    filter: SessionFilter,
    after: (position: PagePosition, count: number, now: StoreMs) => Candidate[],
  ): Promise<SessionPage> {
    let position = startOf(from, filter);
    const take = async (count: number) => {
      const candidates = this.#transactions.read((now) => after(position, count, now));
      position = candidates.at(-1)?.position ?? position;
      return candidates;
    };
    return search(take, limit, filter);
  }

  /** Counts all live sessions, in many turns of the event loop so that other work is not delayed. */
  async count(): Promise<number> {
    const { first, last } = this.#transactions.read(() => this.#sessions.rowRange());
    let count = 0;
    for (let at = first; at <= last; at += ROWS_PER_COUNT) {
      count += this.#transactions.read((now) => this.#sessions.countRows(at, at + ROWS_PER_COUNT - 1, now));
      await nextTurn();
    }
    return count;
  }
}
