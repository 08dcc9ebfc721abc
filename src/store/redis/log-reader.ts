/** Reads the revocation logs of all partitions. */
import { InvalidCursor, type RevocationBatch } from "../../session/ports.ts";
import { storeMs } from "../../session/time.ts";
import type { Link } from "./link.ts";
import { isEndings, parseEntries, restOf, revokedUntilOf, tagOfEndings } from "./log-entry.ts";
import { TAGS } from "./partitions.ts";
import { buffers, text } from "./replies.ts";

/** How far back of its cursor a reader of the log looks, ms: by so much the clocks of Redis nodes may differ. */
const CURSOR_SLACK_MS = 5_000;
/** A log that was read no longer ago has little news, ms. */
const RECENT_MS = 10_000;
/** Entries that one script returns: some 1 ms. */
const ENTRIES_PER_READ = 500;
/** Partitions that are read at once where there may be much. */
const PARTITIONS_PER_READ = 4;

export class LogReader {
  readonly #link: Link;
  readonly #clustered: boolean;
  readonly #finish: (tag: string) => Promise<void>;
  /** The ends of many sessions that were under way when the log was read last, with how far they were. */
  #endings: ReadonlySet<string> = new Set();
  /** The position and the time of the last reading of the log. */
  #cursor = "";
  #readAt = 0;

  /** @param finish does what is left of the ends of many sessions in a partition */
  constructor(link: Link, clustered: boolean, finish: (tag: string) => Promise<void>) {
    this.#link = link;
    this.#clustered = clustered;
    this.#finish = finish;
  }

  /**
   * The log has no order but time, and every node has its own clock: a cursor is the least time at which any partition
   * was read, and reading resumes a little before it. What was appended since is there, and some of it is delivered twice.
   */
  async read(cursor: string | undefined): Promise<RevocationBatch> {
    const since = cursor === undefined ? 0 : parseCursor(cursor) - CURSOR_SLACK_MS;
    const startedAt = performance.now();
    const isNext = cursor === this.#cursor && startedAt - this.#readAt < RECENT_MS;
    const replies: string[][] = [];
    if (isNext) {
      const slots = this.#clustered ? TAGS.map((tag) => [tag]) : [TAGS];
      await Promise.all(slots.map((tags) => this.#read(tags, since, replies)));
    } else {
      // Much may have been appended: one after the other.
      const piece = this.#clustered ? 1 : PARTITIONS_PER_READ;
      for (let at = 0; at < TAGS.length; at += piece) await this.#read(TAGS.slice(at, at + piece), since, replies);
    }
    this.#resume(replies.flatMap((texts) => texts.filter(isEndings)));
    const now = storeMs(Math.min(...replies.map(([time]) => Number(time))));
    const revocations = replies.flatMap(([, ...entries]) => parseEntries(entries));
    revocations.sort((a, b) => a.revokedAt - b.revokedAt);
    const revokedUntil = storeMs(Math.max(...replies.map(revokedUntilOf)));
    [this.#cursor, this.#readAt] = [`r.${now}`, startedAt];
    return { revocations, revokedUntil, cursor: this.#cursor, now };
  }

  /** All that partitions hold, piece by piece, so that no script holds up all others for long. */
  async #read(tags: readonly string[], since: number, replies: string[][]): Promise<void> {
    let rest = await this.#readPiece(tags, since, ENTRIES_PER_READ, replies);
    while (rest !== undefined) {
      const { tag } = rest;
      let from = since;
      let most = ENTRIES_PER_READ;
      while (rest !== undefined) {
        most = rest.time > from ? ENTRIES_PER_READ : 2 * most; // all of the piece was revoked in one millisecond
        from = rest.time;
        rest = await this.#readPiece([tag], from, most, replies);
      }
      const left = tags.slice(tags.indexOf(tag) + 1);
      if (left.length > 0) return this.#read(left, since, replies);
    }
  }

  /** @returns where to go on, if there is more */
  async #readPiece(tags: readonly string[], since: number, most: number, replies: string[][]) {
    const texts = buffers(await this.#link.run("revocations", tags, [since, most])).map((bytes) => text(bytes));
    replies.push(texts);
    return restOf(texts);
  }

  /** What has not gone on since the last reading may have been left by an instance that is no more. */
  #resume(endings: readonly string[]): void {
    const before = this.#endings;
    this.#endings = new Set(endings);
    for (const ending of endings) {
      if (before.has(ending)) this.#finish(tagOfEndings(ending)).catch(() => {}); // the next reading finds it again
    }
  }
}

function parseCursor(cursor: string): number {
  const [, time] = /^r\.(\d{1,15})$/.exec(cursor) ?? [];
  if (time === undefined) throw new InvalidCursor("not a cursor of the Redis store");
  return Number(time);
}
