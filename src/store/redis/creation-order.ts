/**
 * Lists the sessions of all partitions in order of creation, newest first. It merges the orders of the partitions, reading only as much
 * as is needed.
 */
import type { Session } from "../../session/model.ts";
import { storeMs } from "../../session/time.ts";
import type { PagePosition } from "../page.ts";
import type { Candidate } from "../search.ts";
import type { Link } from "./link.ts";
import { TAGS, tagOfSession } from "./partitions.ts";
import { buffers, listed, sessionId, text } from "./replies.ts";

/**
 * How many entries of each partition are read first. From 256 partitions together this is enough for a page, unless a few subjects have
 * most of the sessions.
 */
const FIRST_ENTRIES = 4;
/** Later reads of a partition double the number of entries, up to this number. */
const MOST_ENTRIES = 128;
/** How many partitions one script reads, if they are on one node: some 0.2 ms. */
const PARTITIONS_PER_READ = 32;

const TIME_BYTES = 6;
const SID_BYTES = 23;
const ENTRY_BYTES = TIME_BYTES + SID_BYTES;

/** What has been read of a partition. Entries have the form of lua/partition.lua, with one character for each byte, the newest last. */
type Run = { readonly tag: string; readonly entries: string[]; ended: boolean; wanted: number };

export class CreationOrder {
  readonly #link: Link;
  readonly #clustered: boolean;
  readonly #start: string;
  #runs: Run[] | undefined;

  constructor(link: Link, clustered: boolean, start: PagePosition) {
    this.#link = link;
    this.#clustered = clustered;
    this.#start = entryOf(start);
  }

  /** Returns the next candidates. If there are fewer than `count`, they are the last ones. */
  async take(count: number): Promise<Candidate[]> {
    this.#runs ??= await this.#begin();
    const taken: string[] = [];
    while (taken.length < count) {
      const run = newest(this.#runs);
      const entry = run?.entries.pop();
      if (run === undefined || entry === undefined) break;
      taken.push(entry);
      if (run.entries.length === 0 && !run.ended) await this.#continue(run, entry);
    }
    return this.#read(taken.map(positionOf));
  }

  async #begin(): Promise<Run[]> {
    const size = this.#clustered ? 1 : PARTITIONS_PER_READ;
    const groups: (readonly string[])[] = [];
    for (let at = 0; at < TAGS.length; at += size) groups.push(TAGS.slice(at, at + size));
    const runs = groups.map(async (tags) => {
      const replies = await this.#newest(tags, FIRST_ENTRIES, this.#start);
      return tags.map((tag, at) => toRun(tag, replies[at] ?? [], FIRST_ENTRIES));
    });
    return (await Promise.all(runs)).flat();
  }

  async #continue(run: Run, after: string): Promise<void> {
    run.wanted = Math.min(2 * run.wanted, MOST_ENTRIES);
    const [entries = []] = await this.#newest([run.tag], run.wanted, after);
    run.ended = entries.length < run.wanted;
    run.entries.push(...entries);
  }

  /** Returns the entries of each partition that precede an entry, the newest last. */
  async #newest(tags: readonly string[], count: number, before: string): Promise<string[][]> {
    const replies = await this.#link.run("newest", tags, [count, Buffer.from(before, "latin1")]);
    return buffers(replies).map((reply) => splitEntries(text(reply)).reverse());
  }

  async #read(positions: readonly PagePosition[]): Promise<Candidate[]> {
    const byTag = new Map<string, string[]>();
    for (const { sid } of positions) {
      const tag = tagOfSession(sid);
      const sids = byTag.get(tag);
      if (sids === undefined) byTag.set(tag, [sid]);
      else sids.push(sid);
    }
    const reads = [...byTag].map(async ([tag, sids]) => listed(await this.#link.run("read", [tag], [sids.join("")])));
    const sessions = new Map<string, Session>();
    for (const session of (await Promise.all(reads)).flat()) sessions.set(session.sid, session);
    return positions.map((position) => ({ position, session: sessions.get(position.sid) }));
  }
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

function toRun(tag: string, entries: string[], wanted: number): Run {
  return { tag, entries, ended: entries.length < wanted, wanted };
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

export function positionOf(entry: string): PagePosition {
  const bytes = Buffer.from(entry, "latin1");
  return { createdAt: storeMs(bytes.readUIntBE(0, TIME_BYTES)), sid: sessionId(bytes.subarray(TIME_BYTES)) };
}
