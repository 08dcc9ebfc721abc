/**
 * Limits the log lines that an event may cause: a caller that can cause one line can cause millions of lines.
 * Suppressed lines are counted. The count is reported with the next line of the same kind, or by `takeSuppressed` if none comes.
 */

/** How many lines of one kind are written in one second. */
export const LINES_PER_SECOND = 10;
/** How many kinds of log lines each have a limit of their own. All further kinds share one limit. */
const MAX_KINDS = 256;
const OVERFLOW = "other";

const NONE: ReadonlySet<string> = new Set();

type Budget = { second: number; lines: number; suppressed: number };

type LineLimit = {
  /** @returns how many lines of this kind were suppressed since the last one that passed; undefined if this line must be suppressed */
  admit(event: string, kind: string): number | undefined;
  /** Counts a line as suppressed, if `admit` would refuse it now. @returns whether it is suppressed */
  suppress(event: string, kind: string): boolean;
  /** Returns the kinds with suppressed lines that no later line has reported, and resets their counts. */
  takeSuppressed(): readonly { readonly kind: string; readonly lines: number }[];
};

/** @param clock returns milliseconds @param unlimited the events that have no limit */
export function createLineLimit(clock: () => number, linesPerSecond = LINES_PER_SECOND, unlimited = NONE): LineLimit {
  const budgets = new Map<string, Budget>();
  const budgetOf = (kind: string): Budget => {
    const known = budgets.get(kind);
    if (known !== undefined) return known;
    if (budgets.size >= MAX_KINDS && kind !== OVERFLOW) return budgetOf(OVERFLOW);
    const budget = { second: 0, lines: 0, suppressed: 0 };
    budgets.set(kind, budget);
    return budget;
  };
  return {
    suppress(event, kind) {
      const budget = unlimited.has(event) ? undefined : budgets.get(kind);
      if (budget === undefined || budget.lines < linesPerSecond || Math.floor(clock() / 1000) !== budget.second)
        return false;
      budget.suppressed++;
      return true;
    },
    admit(event, kind) {
      if (unlimited.has(event)) return 0;
      const budget = budgetOf(kind);
      const second = Math.floor(clock() / 1000);
      if (second !== budget.second) {
        budget.second = second;
        budget.lines = 0;
      }
      if (budget.lines >= linesPerSecond) {
        budget.suppressed++;
        return undefined;
      }
      budget.lines++;
      const { suppressed } = budget;
      budget.suppressed = 0;
      return suppressed;
    },
    takeSuppressed() {
      const found: { kind: string; lines: number }[] = [];
      for (const [kind, budget] of budgets) {
        if (budget.suppressed === 0) continue;
        found.push({ kind, lines: budget.suppressed });
        budget.suppressed = 0;
      }
      return found;
    },
  };
}
