import { randomBytes } from "node:crypto";
import { isStaleMark, type LogEntry, type Revocation } from "../../session/model.ts";
import { InvalidCursor, type SessionStore } from "../../session/ports.ts";
import { storeMs } from "../../session/time.ts";
import { createResumption } from "../resumption.ts";
import { buffers, text } from "./encoding/replies.ts";
import { parseEntries } from "./log-entry.ts";
import { slicesOf } from "./partitions.ts";
import type { ScriptRunner } from "./script-runner.ts";

/** If the log was read less than this long ago, in ms, it is assumed to have few new entries. */
const RECENT_MS = 10_000;
/** How many entries one script returns, in about 1 ms. */
const ENTRIES_PER_READ = 500;
/** The logs of how many partitions are read at once, if they may have many entries. */
const PARTITIONS_PER_READ = 4;
const ID_BYTES = 12;

/** For each partition, the entry that was read last. */
type Positions = ReadonlyMap<string, string>;

/**
 * Returns a function that reads what was appended to the log since the reading that gave `cursor`: each entry once, or twice if it was
 * appended in the millisecond of that reading. If the cursor is not from the last reading by this function, it returns everything in the
 * log.
 *
 * A position is an entry, not a time, because every node has its own clock. Later entries follow that entry in the log, whatever the
 * clock shows. If a node has taken over in a failover and lacks the entry, it returns its whole log (lua/revocations.lua).
 *
 * @param finish completes the bulk logouts of a partition
 */
export function createLogReader(
  runner: Pick<ScriptRunner, "run" | "clustered">,
  finish: (tag: string) => Promise<void>,
): SessionStore["revocations"] {
  const id = randomBytes(ID_BYTES).toString("base64url");
  /** The last reading of the log: its cursor, the positions that the cursor stands for, and the time at which the reading began. */
  let last = { cursor: "", positions: new Map() as Positions, startedAt: 0 };
  let readings = 0;
  const resume = createResumption(finish);

  return async (cursor) => {
    if (cursor !== undefined) requireCursor(cursor);
    const startedAt = performance.now();
    const isNext = cursor !== undefined && cursor === last.cursor;
    const positions = new Map(isNext ? last.positions : []);
    const pieces: Piece[] = [];
    if (isNext && startedAt - last.startedAt < RECENT_MS) {
      const slots = slicesOf(runner);
      await Promise.all(slots.map((tags) => readPieces(runner, tags, positions, pieces)));
    } else {
      // The log may have many entries, so the partitions are read one after the other.
      const slices = slicesOf(runner, PARTITIONS_PER_READ);
      for (const tags of slices) await readPieces(runner, tags, positions, pieces);
    }
    resume(new Map(pieces.flatMap(({ endings }) => [...endings])));
    const found = pieces.flatMap(({ entries }) => entries);
    const staleMarks = found.filter(isStaleMark);
    const revocations = found.filter((entry): entry is Revocation => !isStaleMark(entry));
    revocations.sort((a, b) => a.revokedAt - b.revokedAt);
    const revokedUntil = storeMs(Math.max(...pieces.map((piece) => piece.revokedUntil)));
    const now = storeMs(Math.min(...pieces.map((piece) => piece.now)));
    last = { cursor: `r.${id}.${++readings}`, positions, startedAt };
    return { revocations, staleMarks, revokedUntil, cursor: last.cursor, now };
  };
}

/** Appends to `pieces` what was logged after the positions, and moves these. Several short scripts run, so that none delays others. */
async function readPieces(
  runner: Pick<ScriptRunner, "run">,
  tags: readonly string[],
  positions: Map<string, string>,
  pieces: Piece[],
): Promise<void> {
  for (let left = tags; left.length > 0; ) {
    const args = [ENTRIES_PER_READ, ...left.map((tag) => positions.get(tag) ?? "")] as const;
    const piece = parsePiece(buffers(await runner.run("revocations", left, args)).map(text));
    pieces.push(piece);
    for (const [tag, entry] of piece.positions) positions.set(tag, entry);
    left = piece.rest === undefined ? [] : left.slice(left.indexOf(piece.rest));
  }
}

/** What one run of lua/revocations.lua has returned. */
type Piece = {
  readonly now: number;
  readonly entries: readonly LogEntry[];
  /** The time of creation up to which a logout of everyone has ended all sessions; 0 if there is none. */
  readonly revokedUntil: number;
  /** How far the bulk logouts are, by partition. */
  readonly endings: ReadonlyMap<string, string>;
  /** For each partition with new entries, the entry after which the next reading begins. */
  readonly positions: Positions;
  /** The partition with which the next run must begin; undefined if all was read. */
  readonly rest: string | undefined;
};

function parsePiece([now, ...texts]: readonly string[]): Piece {
  const [endings, positions] = [new Map<string, string>(), new Map<string, string>()];
  let revokedUntil = 0;
  let tag = "";
  let rest: string | undefined;
  for (const text of texts) {
    const [kind, name = "", progress = ""] = text.split(" ");
    if (kind === "ending") endings.set(name, progress);
    else if (kind === "rest") rest = name;
    else if (kind === "log") tag = name;
    else if (tag !== "") positions.set(tag, kind === "next" ? text.slice("next ".length) : text);
    if (kind === "*") revokedUntil = Math.max(revokedUntil, Number(name));
  }
  return { now: Number(now), entries: parseEntries(texts), revokedUntil, endings, positions, rest };
}

function requireCursor(cursor: string): void {
  if (!/^r\.[\w-]{16}\.\d{1,15}$/.test(cursor)) throw new InvalidCursor("not a cursor of the Redis store");
}
