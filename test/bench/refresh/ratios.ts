/** Summarizes rounds: medians, and ratios of measurements in the same round. */
import { median } from "../../support/median.ts";
import type { Result } from "./plan.ts";

/** The measurements of one server: a result for each round. */
export type Measured = { readonly title: string; readonly expected: string; readonly results: readonly Result[] };

/** Returns unexpected responses, such as "3 × 401"; undefined if all were as expected. */
export function strangers({ expected, results }: Measured): string | undefined {
  const counts = new Map<string, number>();
  for (const { responses } of results) {
    for (const [status, count] of Object.entries(responses)) counts.set(status, (counts.get(status) ?? 0) + count);
  }
  if (!counts.has(expected)) return `no ${expected}`;
  counts.delete(expected);
  if (counts.size === 0) return undefined;
  return [...counts].map(([status, count]) => `${count} × ${status}`).join(", ");
}

/**
 * Divides the measurements of two servers in the same round, and returns the median over all rounds. A disturbance of a round affects both
 * servers, and so hardly changes their ratio.
 */
export function ratio(of: Measured, to: Measured, measure: "rate" | "p99" | "cpu"): number | { refused: string } {
  for (const side of [of, to]) {
    const wrong = strangers(side);
    if (wrong !== undefined) return { refused: `${side.title}: ${wrong}` };
  }
  const value = median(
    of.results.map((result, round) => result[measure] / (to.results[round]?.[measure] ?? Number.NaN)),
  );
  return Number.isNaN(value) ? { refused: "cannot be measured here" } : value;
}
