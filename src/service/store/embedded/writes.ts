import type { StatementResultingChanges } from "node:sqlite";
import type { LogEntry } from "../../session/model.ts";
import type { Wakers } from "../wakers.ts";
import type { Transactions } from "./transactions.ts";

/** The transactions that write, and what their steps call for the listeners. */
export type Writes = Pick<Transactions, "write"> & {
  /** Notes an entry that was appended to the log. */
  readonly publish: (entry: LogEntry) => void;
  /** Notes the result of a statement that marks the sessions which have to end because their actors' sessions have ended. */
  readonly handOver: (result: Pick<StatementResultingChanges, "changes">) => void;
};

/** Calls the listeners after each transaction that has something for them. */
export function createWrites(transactions: Transactions, wakers: Wakers, handOvers: Wakers): Writes {
  let appended: LogEntry[] = [];
  let isHandedOver = false;
  return {
    write(durability, step) {
      appended = [];
      isHandedOver = false;
      const result = transactions.write(durability, step);
      if (appended.length > 0) wakers.wake(appended);
      if (isHandedOver) handOvers.wake([]);
      return result;
    },
    publish: (entry) => void appended.push(entry),
    handOver: ({ changes }) => {
      isHandedOver ||= changes > 0;
    },
  };
}
