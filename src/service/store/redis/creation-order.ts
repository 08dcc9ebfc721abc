/** Reads the sessions of all partitions in order of creation, newest first, by merging the orders of the partitions. */
import { storeMs } from "../../session/time.ts";
import type { Candidate, PagePosition, TakeCandidates } from "../search.ts";
import { buffers, listed, sessionId, text } from "./encoding/replies.ts";
import { slicesOf, tagOfSession } from "./partitions.ts";
import type { ScriptRunner } from "./script-runner.ts";

/** How many entries of each partition are read first. With 256 partitions, this is usually enough for a page. */
const FIRST_ENTRIES = 4;
/** Later reads of a partition double the number of entries, up to this number. */
const MOST_ENTRIES = 128;
/** How many partitions one script reads, if they are on one node: some 0.2 ms. */
const PARTITIONS_PER_READ = 32;

const TIME_BYTES = 6;
const SID_BYTES = 23;
const ENTRY_BYTES = TIME_BYTES + SID_BYTES;

/** The entries of a partition (lua/lib/sizes.lua) that were read and not returned yet, the newest last. A character is a byte. */
type Run = { readonly tag: string; readonly entries: string[]; ended: boolean; wanted: number };

export function takeInCreationOrder(runner: Pick<ScriptRunner, "run" | "clustered">): TakeCandidates {
  let runs: Run[] | undefined;
  return async (after, count) => {
    runs ??= await beginRuns(runner, entryOf(after));
    const taken: string[] = [];
    while (taken.length < count) {
      const run = newest(runs);
      const entry = run?.entries.pop();
      if (run === undefined || entry === undefined) break;
      taken.push(entry);
      if (run.entries.length === 0 && !run.ended) await continueRun(runner, run, entry);
    }
    return readSessions(runner, taken.map(positionOfEntry));
  };
}

async function beginRuns(runner: Pick<ScriptRunner, "run" | "clustered">, start: string): Promise<Run[]> {
  const runs = slicesOf(runner, PARTITIONS_PER_READ).map(async (tags) => {
    const replies = await entriesBefore(runner, tags, FIRST_ENTRIES, start);
    return tags.map((tag, at): Run => {
      const entries = replies[at] ?? [];
      return { tag, entries, ended: entries.length < FIRST_ENTRIES, wanted: FIRST_ENTRIES };
    });
  });
  return (await Promise.all(runs)).flat();
}

async function continueRun(runner: Pick<ScriptRunner, "run">, run: Run, after: string): Promise<void> {
  run.wanted = Math.min(2 * run.wanted, MOST_ENTRIES);
  const [entries = []] = await entriesBefore(runner, [run.tag], run.wanted, after);
  run.ended = entries.length < run.wanted;
  run.entries.push(...entries);
}

/** Returns the entries of each partition that precede an entry, the newest last. */
async function entriesBefore(
  runner: Pick<ScriptRunner, "run">,
  tags: readonly string[],
  count: number,
  before: string,
): Promise<string[][]> {
  const replies = await runner.run("newest", tags, [count, Buffer.from(before, "latin1")]);
  return buffers(replies).map((reply) => splitEntries(text(reply)).reverse());
}

async function readSessions(
  runner: Pick<ScriptRunner, "run">,
  positions: readonly PagePosition[],
): Promise<Candidate[]> {
  const byTag = Map.groupBy(positions, ({ sid }) => tagOfSession(sid));
  const reads = [...byTag].map(async ([tag, some]) =>
    listed(await runner.run("find_many", [tag], [some.map(({ sid }) => sid).join("")])),
  );
  const found = (await Promise.all(reads)).flat();
  const sessions = new Map(found.map((session) => [session.sid, session]));
  return positions.map((position) => ({ position, session: sessions.get(position.sid) }));
}

/** Returns the partition whose next entry is the newest. */
function newest(runs: readonly Run[]): Run | undefined {
  let found: Run | undefined;
  let latest = "";
  for (const run of runs) {
    const entry = run.entries.at(-1) ?? "";
    if (entry > latest) [found, latest] = [run, entry];
  }
  return found;
}

function splitEntries(bytes: string): string[] {
  return Array.from({ length: bytes.length / ENTRY_BYTES }, (_, at) =>
    bytes.slice(at * ENTRY_BYTES, (at + 1) * ENTRY_BYTES),
  );
}

export function entryOf({ createdAt, sid }: PagePosition): string {
  const time = Buffer.alloc(TIME_BYTES);
  time.writeUIntBE(Math.max(0, Math.min(createdAt, 2 ** 48 - 1)), 0, TIME_BYTES);
  return time.toString("latin1") + sid.padEnd(SID_BYTES, "\0");
}

export function positionOfEntry(entry: string): PagePosition {
  const bytes = Buffer.from(entry, "latin1");
  return { createdAt: storeMs(bytes.readUIntBE(0, TIME_BYTES)), sid: sessionId(bytes.subarray(TIME_BYTES)) };
}
