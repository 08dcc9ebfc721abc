/**
 * Records what happens to sessions: an audit line at once, and an event that the store keeps. Operations never wait for the recording.
 * Creations and endings are recorded exactly once, even if the responses to their callers are lost (events.ts).
 *
 * This module also finds due records (notes of events that are still to be recorded) that other instances have left behind. It takes over a
 * due record when the record is old enough and its part of the store has been readable for all that time: a live instance has deleted its
 * due record by then. An event is recorded twice only if an instance dies, or loses a store that others reach, in the roughly 20 ms between
 * its audit line and its event.
 */
import type { Audit } from "../audit.ts";
import type { Clock, SessionStore } from "../ports.ts";
import { later, type WallClock } from "../time.ts";
import { dueLines, type Keeping, keptOf, keptOfDue, requesterOf } from "./due-lines.ts";
import type { DueRecord, EventRecord } from "./events.ts";

/** How long events wait in memory, in ms, so that several are written together. */
const GATHER_MS = 20;
/** How long to wait, in ms, before events that the store did not accept are written again. */
const RETRY_MS = 2_000;
/** How many events may wait in memory. Further ones are lost. */
const MAX_WAITING = 5_000;
/**
 * How often this module looks for events that are still to be recorded (due records), in ms. If more than MAX_GAP_MS passes between two
 * readings of a part of the store, the part counts as unreadable in between.
 */
const LOOK_MS = 5_000;
const MAX_GAP_MS = 3 * LOOK_MS;
/** How often this process checks whether it was suspended, in ms. More than MAX_STALL_MS between two checks counts as a suspension. */
const TICK_MS = 1_000;
const MAX_STALL_MS = 5_000;
/** An event that another instance has left unrecorded is taken over after the longest operation of the store and this time, in ms. */
const PATIENCE_MS = 20_000;

type Deps = {
  readonly log: Pick<SessionStore, "recordEvents" | "dueRecords" | "claimRecord" | "shiftMs">;
  /** The audit log, which gets a line for each event. */
  readonly lines: Audit;
  readonly clock: WallClock;
  /** The monotonic clock of the process, in ms. */
  readonly steady: Clock;
  /** Makes the texts that distinguish events that are otherwise equal. */
  readonly newId: () => string;
  /** How long events are kept, in ms; 0 keeps none. */
  readonly retentionMs: number;
  /** How long an operation of the store may take, in ms, if the process is not suspended. */
  readonly maxStepMs: number;
  readonly onLost: (count: number) => void;
};

export class EventRecorder {
  readonly #deps: Deps;
  readonly #keeping: Keeping;
  readonly #overdueMs: number;
  readonly #ticking: NodeJS.Timeout;
  readonly #looking: NodeJS.Timeout;
  #waiting: EventRecord[] = [];
  /** Events that were sent to the store and are not confirmed yet. */
  #sent: readonly EventRecord[] = [];
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();
  #isWriting = false;
  #look: Promise<void> | undefined;
  #closed = false;
  #tickedAt: number;
  #doubtfulUntil = Number.NEGATIVE_INFINITY;
  /** For each part of the store, since when it has been readable, and when it was last read, in ms by the process's monotonic clock. */
  #readable = new Map<string, { readonly since: number; readonly last: number }>();

  constructor(deps: Deps) {
    this.#deps = deps;
    this.#keeping = { clock: deps.clock, shiftMs: (place) => deps.log.shiftMs(place) };
    this.#overdueMs = deps.maxStepMs + PATIENCE_MS;
    this.#tickedAt = deps.steady();
    this.#ticking = setInterval(() => this.#tick(), TICK_MS).unref();
    this.#looking = setInterval(() => void this.lookForDue(), LOOK_MS).unref();
  }

  readonly audit: Audit = (event, requester) => {
    const { lines } = this.#deps;
    // Refreshes are not kept. They are most of all events, so they are not looked up.
    if (event.event === "session_renewed") return lines(event, requester);
    const kept = keptOf(event, requester, this.#keeping);
    const isDue = event.event === "authn_token_reuse" || kept?.dueKey !== undefined;
    // If this process was suspended, another instance may have claimed the due record. If too many events wait, this one cannot be kept. In
    // both cases nothing is recorded here: the instance that claims the due record writes the line and the event.
    if (isDue && (this.#isDoubtful() || this.#waiting.length >= MAX_WAITING)) return;
    lines(event, requester);
    if (kept === undefined) return;
    this.#add(kept.dueKey === undefined ? { ...kept, id: this.#deps.newId() } : kept);
  };

  /** Writes the events that wait, and stops. */
  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#ticking);
    clearInterval(this.#looking);
    await this.#look;
    await this.flush();
    clearTimeout(this.#timer);
    if (this.#waiting.length > 0) this.#deps.onLost(this.#waiting.length);
  }

  /** Writes the events that wait, if the store accepts them. It runs by itself; tests call it, too. */
  async flush(): Promise<void> {
    await this.#writing;
    this.#writing = this.#write();
    await this.#writing;
  }

  #add(record: EventRecord): void {
    if (this.#waiting.length < MAX_WAITING) this.#waiting.push(record);
    else this.#deps.onLost(1);
    this.#schedule(GATHER_MS);
  }

  #schedule(delayMs: number): void {
    if (this.#isWriting) return; // A later call writes the waiting events.
    this.#timer ??= setTimeout(() => {
      this.#writing = this.#write();
    }, delayMs).unref();
  }

  async #write(): Promise<void> {
    const { log, retentionMs } = this.#deps;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#isWriting = true;
    this.#sent = this.#waiting;
    this.#waiting = [];
    let rest = this.#sent;
    try {
      if (rest.length > 0) rest = await log.recordEvents(rest, retentionMs);
    } catch {
      // After any error, the events stay in memory and are written again later.
    }
    this.#sent = [];
    this.#keep([...rest, ...this.#waiting]);
    this.#isWriting = false;
    if (this.#waiting.length > 0) this.#schedule(rest.length > 0 ? RETRY_MS : GATHER_MS);
  }

  #keep(records: EventRecord[]): void {
    const lost = Math.max(0, records.length - MAX_WAITING);
    this.#waiting = records.slice(lost);
    if (lost > 0) this.#deps.onLost(lost);
  }

  #tick(): void {
    this.#isDoubtful();
    this.#tickedAt = this.#deps.steady();
  }

  /** Returns whether this process was suspended a moment ago: an operation that seems to have ended just now may have ended long ago. */
  #isDoubtful(): boolean {
    const now = this.#deps.steady();
    if (now - this.#tickedAt > MAX_STALL_MS) this.#doubtfulUntil = now + this.#deps.maxStepMs;
    return now < this.#doubtfulUntil;
  }

  /** Records events that other instances left unrecorded for too long. It runs every 5 s; tests call it when they move the clock. */
  lookForDue(): Promise<void> {
    this.#look ??= this.#takeOver().finally(() => {
      this.#look = undefined;
    });
    return this.#look;
  }

  async #takeOver(): Promise<void> {
    try {
      let claimed = Number.POSITIVE_INFINITY;
      while (claimed > 0 && !this.#closed && this.#waiting.length < MAX_WAITING / 2) {
        claimed = 0;
        const claims = (await this.#overdue()).map(async (record) => {
          if (!(await this.#deps.log.claimRecord(record))) return;
          claimed++;
          this.#record(record);
        });
        await Promise.allSettled(claims);
      }
    } catch {
      this.#readable.clear();
    }
  }

  async #overdue(): Promise<readonly DueRecord[]> {
    const { log, steady } = this.#deps;
    const startedAt = steady();
    const parts = await log.dueRecords();
    const ours = new Set([...this.#sent, ...this.#waiting].map(({ dueKey }) => dueKey));
    const before = this.#readable;
    this.#readable = new Map();
    return parts.flatMap(({ part, now, records }) => {
      const known = before.get(part);
      const since = known !== undefined && startedAt - known.last <= MAX_GAP_MS ? known.since : startedAt;
      this.#readable.set(part, { since, last: startedAt });
      if (startedAt - since < this.#overdueMs) return [];
      return records.filter((record) => record.since <= later(now, -this.#overdueMs) && !ours.has(record.key));
    });
  }

  #record(due: DueRecord): void {
    const requester = requesterOf(due);
    for (const line of dueLines(due)) this.#deps.lines(line, requester);
    this.#add(keptOfDue(due, this.#keeping));
  }
}
