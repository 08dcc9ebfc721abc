/** Estimates how many sessions are live, at a bounded cost. */
import type { Link } from "./link.ts";
import { slicesOf, TAGS } from "./partitions.ts";
import { text } from "./replies.ts";

/** How many chunks of up to 32 sessions are read in each partition. Up to some 20,000 sessions, these are all. */
const CHUNKS_LOOKED_AT = 3;
/** How many partitions one script reads, if they are on one node: some 0.2 ms. */
const PARTITIONS_PER_READ = 4;

/** Runs the scripts one after the other, so that other commands run between them. */
export async function countSessions(link: Link, clustered: boolean): Promise<number> {
  let sum = 0;
  for (const tags of slicesOf(TAGS, clustered ? 1 : PARTITIONS_PER_READ)) {
    sum += Number(text(await link.run("count", tags, [CHUNKS_LOOKED_AT])));
  }
  return Math.round(sum);
}
