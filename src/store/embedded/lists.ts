/** Pages of sessions: of a subject, or of all. */
import { setImmediate as nextTurn } from "node:timers/promises";
import { byEarlierClock, EVERY_SESSION, type SessionFilter } from "../../session/filter.ts";
import type { SessionPage } from "../../session/ports.ts";
import type { PagePosition } from "../page.ts";
import { type Candidate, search, startOf } from "../search.ts";
import { pageByClock } from "../shifted.ts";
import type { StoreClock } from "./clock.ts";
import type { SessionTable } from "./session-table.ts";
import type { Transactions } from "./transactions.ts";

/** Rows that are counted at once: some 0.1 ms. */
const ROWS_PER_COUNT = 250;

export class SessionLists {
  readonly #transactions: Transactions;
  readonly #sessions: SessionTable;
  readonly #clock: StoreClock;

  constructor(transactions: Transactions, sessions: SessionTable, clock: StoreClock) {
    this.#transactions = transactions;
    this.#sessions = sessions;
    this.#clock = clock;
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
    after: (position: PagePosition, count: number, now: number) => Candidate[],
  ): Promise<SessionPage> {
    const { shift } = this.#clock;
    const wanted = byEarlierClock(filter, shift);
    let position = startOf(from, wanted);
    const take = async (count: number) => {
      const candidates = this.#transactions.read((now) => after(position, count, now));
      position = candidates.at(-1)?.position ?? position;
      return candidates;
    };
    return pageByClock(await search(take, limit, wanted), shift);
  }

  /** All live sessions; other work comes in between. */
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
