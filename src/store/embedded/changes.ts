/** Notices that another process has changed the database file. It checks only while there are listeners. */
import { createWakers, type Wakers } from "../wakers.ts";
import type { Statements } from "./statements.ts";

/** How often the file is checked for writes of other processes, in ms. */
const POLL_INTERVAL_MS = 100;

export function watchChanges(sql: Statements): Wakers & { close(): void } {
  let poll: NodeJS.Timeout | undefined;
  /** Returns a number that changes with every commit of another process. If the number cannot be read, that counts as a change. */
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
