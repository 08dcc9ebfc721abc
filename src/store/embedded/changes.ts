/** Checks whether another process has changed the file, while there are listeners. */
import { Wakers } from "../wakers.ts";
import type { Statements } from "./statements.ts";

/** How often writes of other processes to the same file are looked for, in ms. */
const POLL_INTERVAL_MS = 100;

export function watchChanges(sql: Statements): Wakers & { close(): void } {
  let poll: NodeJS.Timeout | undefined;
  /** A number that changes with every commit of another process. An unknown number counts as a change. */
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
  const wakers = new Wakers(start, stop);
  return Object.assign(wakers, { close: stop });
}
