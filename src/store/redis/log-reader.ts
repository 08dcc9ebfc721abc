/** Reads the revocation logs of all partitions. */
import { randomBytes } from "node:crypto";
import { InvalidCursor, type RevocationBatch } from "../../session/ports.ts";
import { storeMs } from "../../session/time.ts";
import type { Link } from "./link.ts";
import { isEndings, parseEntries, pieceOf, revokedUntilOf, tagOfEndings } from "./log-entry.ts";
import { TAGS } from "./partitions.ts";
import { buffers, text } from "./replies.ts";

/** A log that was read less than this long ago, in ms, is assumed to have few new entries. */
const RECENT_MS = 10_000;
/** How many entries one script returns: some 1 ms. */
const ENTRIES_PER_READ = 500;
/** How many partitions are read at once if they may have many entries. */
const PARTITIONS_PER_READ = 4;
const ID_BYTES = 12;

/** For each partition, the entry that was read last. */
type Positions = ReadonlyMap<string, string>;

export class LogReader {
  readonly #link: Pick<Link, "run">;
  readonly #clustered: boolean;
  readonly #finish: (tag: string) => Promise<void>;
  readonly #id = randomBytes(ID_BYTES).toString("base64url");
  /** The ends of many sessions that were under way at the last reading, with their progress. */
  #endings: ReadonlySet<string> = new Set();
  /** The cursor of the last reading of the log, the positions that the cursor stands for, and the time at which the reading began. */
  #cursor = "";
  #positions: Positions = new Map();
  #readAt = 0;
  #readings = 0;

  /** @param finish does the rest of the ends of many sessions in a partition */
  constructor(link: Pick<Link, "run">, clustered: boolean, finish: (tag: string) => Promise<void>) {
    this.#link = link;
    this.#clustered = clustered;
    this.#finish = finish;
  }

  /**
   * Returns what was appended since the reading that gave `cursor`, each entry once, or twice if it was appended in the millisecond of
   * the reading. A cursor other than that of the last reading here
   * returns all that the log holds.
   *
   * A position is an entry, not a time, because every node has its own clock. What is appended later follows it in the log, whatever the
   * clock shows. A node that has taken over and lacks the entry returns its whole log (lua/revocations.lua).
   */
  async read(cursor: string | undefined): Promise<RevocationBatch> {
    if (cursor !== undefined) requireCursor(cursor);
    const startedAt = performance.now();
    const isNext = cursor !== undefined && cursor === this.#cursor;
    const positions = new Map(isNext ? this.#positions : []);
    const replies: string[][] = [];
    if (isNext && startedAt - this.#readAt < RECENT_MS) {
      const slots = this.#clustered ? TAGS.map((tag) => [tag]) : [TAGS];
      await Promise.all(slots.map((tags) => this.#read(tags, positions, replies)));
    } else {
      // The log may have many entries, so the partitions are read one after the other.
      const piece = this.#clustered ? 1 : PARTITIONS_PER_READ;
      for (let at = 0; at < TAGS.length; at += piece) await this.#read(TAGS.slice(at, at + piece), positions, replies);
    }
    this.#resume(replies.flatMap((texts) => texts.filter(isEndings)));
    const now = storeMs(Math.min(...replies.map(([time]) => Number(time))));
    const revocations = replies.flatMap(([, ...entries]) => parseEntries(entries));
    revocations.sort((a, b) => a.revokedAt - b.revokedAt);
    const revokedUntil = storeMs(Math.max(...replies.map(revokedUntilOf)));
    this.#cursor = `r.${this.#id}.${++this.#readings}`;
    this.#positions = positions;
    this.#readAt = startedAt;
    return { revocations, revokedUntil, cursor: this.#cursor, now };
  }

  /**
   * Reads the entries of partitions after the positions, which it updates. It reads in pieces, so that no script delays other commands
   * for long.
   */
  async #read(tags: readonly string[], positions: Map<string, string>, replies: string[][]): Promise<void> {
    for (let left = tags; left.length > 0; ) {
      const args = [ENTRIES_PER_READ, ...left.map((tag) => positions.get(tag) ?? "")];
      const texts = buffers(await this.#link.run("revocations", left, args)).map((bytes) => text(bytes));
      replies.push(texts);
      const { lastEntries, rest } = pieceOf(texts);
      for (const [tag, entry] of lastEntries) positions.set(tag, entry);
      left = rest === undefined ? [] : left.slice(left.indexOf(rest));
    }
  }

  /** Finishes the endings that have made no progress since the last reading: the instance that began them may have died. */
  #resume(endings: readonly string[]): void {
    const before = this.#endings;
    this.#endings = new Set(endings);
    for (const ending of endings) {
      // If finishing the end fails, the next reading finds the end again.
      if (before.has(ending)) this.#finish(tagOfEndings(ending)).catch(() => {});
    }
  }
}

function requireCursor(cursor: string): void {
  if (!/^r\.[\w-]{16}\.\d{1,15}$/.test(cursor)) throw new InvalidCursor("not a cursor of the Redis store");
}
