/** Whether the file was changed by another process, checked while there are listeners. */
import { Wakers } from "../wakers.ts";
import type { Statements } from "./statements.ts";

/** How often the writes of other processes on the same file are looked for, ms. */
const POLL_INTERVAL_MS = 100;

export function watchChanges(sql: Statements): Wakers & { close(): void } {
  let poll: NodeJS.Timeout | undefined;
  /** Changes with every commit of another process; unknown is as good as changed. */
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
