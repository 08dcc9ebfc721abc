/** Estimates how many sessions are live, at a bounded cost. */
import type { Link } from "./link.ts";
import { slicesOf, TAGS } from "./partitions.ts";
import { text } from "./replies.ts";

/**
 * How many chunks of up to 32 sessions are read in each partition. With up to some 20,000 sessions in all, no partition has more chunks
 * than this, so the count is exact.
 */
const CHUNKS_LOOKED_AT = 3;
/** How many partitions one script reads, if they are on one node: some 0.2 ms. */
const PARTITIONS_PER_READ = 4;

/** Estimates the number of sessions. The scripts run one after the other, so that other commands run between them. */
export async function countSessions(link: Link, clustered: boolean): Promise<number> {
  let sum = 0;
  for (const tags of slicesOf(TAGS, clustered ? 1 : PARTITIONS_PER_READ)) {
    sum += Number(text(await link.run("count", tags, [CHUNKS_LOOKED_AT])));
  }
  return Math.round(sum);
}
