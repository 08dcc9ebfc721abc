/** How many sessions are live, estimated at a bounded cost. */
import type { Link } from "./link.ts";
import { TAGS } from "./partitions.ts";
import { text } from "./replies.ts";

/** Chunks of up to 32 sessions that are looked at in each partition: up to some 20,000 sessions, all of them. */
const CHUNKS_LOOKED_AT = 3;
/** Partitions that one script looks at, where they are on one node: some 0.2 ms. */
const PARTITIONS_PER_READ = 4;

/** One script after the other: other commands come in between. */
export async function countSessions(link: Link, clustered: boolean): Promise<number> {
  const size = clustered ? 1 : PARTITIONS_PER_READ;
  let sum = 0;
  for (let at = 0; at < TAGS.length; at += size) {
    const reply = await link.run("count", TAGS.slice(at, at + size), [CHUNKS_LOOKED_AT]);
    sum += Number(text(reply));
  }
  return Math.round(sum);
}
