/** Computes medians of alternating measurements, with their confidence intervals. */
import { Random } from "../../connect-http-routes/roundtrip/random.ts";

export type Estimate = { readonly value: number; readonly low: number; readonly high: number };

const SAMPLES = 2000;
const SHARE = 0.95;

/**
 * Estimates a figure with a confidence interval of 95 % by the bootstrap. A sample draws blocks at random, and within each block draws
 * rounds. All processes are restarted before each block, because two processes of the same program differ more than the rounds of one
 * process show.
 */
export function estimate<Round>(
  blocks: readonly (readonly Round[])[],
  figureOf: (rounds: readonly Round[]) => number,
): Estimate {
  const random = new Random(1);
  const draw = <Item>(items: readonly Item[]) => items.map(() => random.pick(items));
  const samples = Array.from({ length: SAMPLES }, () => figureOf(draw(blocks).flatMap(draw))).sort((a, b) => a - b);
  const at = (share: number) => samples[Math.min(SAMPLES - 1, Math.floor(share * SAMPLES))] ?? Number.NaN;
  return { value: figureOf(blocks.flat()), low: at((1 - SHARE) / 2), high: at((1 + SHARE) / 2) };
}
