/**
 * Delivers signals. One instance at a time reads a partition of the log, for all subscriptions, while it holds the partition's lease.
 * Each signal is delivered at least once: a cursor moves only after the receiver has accepted the signal, and the next holder of the
 * lease continues at the cursor.
 */

import { forEachConcurrently } from "../../session/concurrently.ts";
import type { Cursor, Lease } from "../ports.ts";
import { isPushed } from "./attempt.ts";
import { type Destination, Dispatch } from "./dispatch.ts";
import { hasFilter, Lane, MAX_LINE } from "./lane.ts";
import type { Line } from "./line.ts";
import type { DeliveryDeps } from "./ports.ts";

const LEASE_MS = 10_000;
const RENEW_MS = 3_000;
/** How often subscriptions are read again and cursors are stored, in ms. With a round, a pause holds within five seconds. */
const REFRESH_MS = 4_000;
/** How many signals are read at once for a subscription with a filter. */
const FILTERED_LIMIT = 256;

type Loss = { readonly oldest: Cursor; readonly lost: number };
type Held = { readonly lease: Lease; readonly until: number };

export class Delivery {
  readonly #deps: DeliveryDeps;
  readonly #dispatch: Dispatch;
  readonly #destinations = new Map<string, Destination>();
  readonly #held = new Map<number, Held>();
  /** The partitions that are being read now; true if the partition must be read again afterwards. */
  readonly #reading = new Map<number, boolean>();
  /** For each partition, the end that its log had when it was last read. */
  readonly #seen = new Map<number, Cursor | undefined>();
  #renewedAt = Number.NEGATIVE_INFINITY;
  #refreshedAt = Number.NEGATIVE_INFINITY;

  constructor(deps: DeliveryDeps) {
    this.#deps = deps;
    this.#dispatch = new Dispatch(deps, {
      onRoom: ({ partition }) => this.hint(partition),
      onPaused: (destination) => this.#retire(destination),
    });
  }

  get inFlight(): number {
    return [...this.#destinations.values()].reduce((sum, { lane }) => sum + lane.inFlight, 0);
  }

  /** Runs about once a second: extends leases, reads the subscriptions, stores cursors, and reads partitions that have new signals. */
  async round(): Promise<void> {
    const now = this.#deps.clock();
    try {
      this.#expireLeases(now);
      if (now - this.#refreshedAt >= REFRESH_MS) {
        await this.#refresh();
        await this.flush();
        this.#refreshedAt = now;
      }
      if (now - this.#renewedAt >= RENEW_MS) await this.#renew(now);
      await this.#openLines();
      await this.#readNew();
    } catch (error) {
      this.#deps.events.onFailure(error);
    }
    for (const destination of this.#destinations.values()) this.#dispatch.wake(destination);
  }

  /** Reads a partition at once, because a signal was appended to it. */
  hint(partition: number): void {
    if (!this.#held.has(partition)) return;
    void this.#read(partition).catch(this.#deps.events.onFailure);
  }

  /** Stores the cursors: how far receivers have accepted the signals. */
  async flush(): Promise<void> {
    const lines = [...this.#destinations.values()].flatMap((destination) =>
      [...destination.lane.lines].map((line) => ({ destination, line })),
    );
    await forEachConcurrently(lines, ({ destination, line }) => this.#advance(destination, line));
  }

  /** Stops sending, waits for requests under way, and releases the leases. */
  async stop(): Promise<void> {
    await this.#dispatch.stop();
    // Signals whose cursor could not be stored are sent again by the instance that takes the lease.
    await this.flush().catch(this.#deps.events.onFailure);
    const leases = [...this.#held.values()].map(({ lease }) => lease);
    this.#held.clear();
    await this.#deps.log.release(leases);
  }

  async #renew(now: number): Promise<void> {
    const { log, holder } = this.#deps;
    // An instance that knows of no subscriptions takes no leases: one that knows of some would wait until those leases expire.
    if (this.#destinations.size === 0) return;
    const partitions = Array.from({ length: log.partitions }, (_, index) => index);
    const leases = await log.lease(partitions, holder, LEASE_MS);
    this.#renewedAt = now;
    const held = new Map(leases.map((lease) => [lease.partition, lease]));
    for (const [partition, { lease }] of this.#held) {
      if (held.get(partition)?.fence !== lease.fence) this.#release(partition);
    }
    for (const lease of leases) this.#held.set(lease.partition, { lease, until: now + LEASE_MS });
  }

  #expireLeases(now: number): void {
    for (const [partition, { until }] of this.#held) if (until <= now) this.#release(partition);
  }

  #release(partition: number): void {
    this.#held.delete(partition);
    this.#closeLines(partition);
  }

  #closeLines(partition: number): void {
    for (const { lane } of this.#destinations.values()) lane.close(partition);
  }

  async #refresh(): Promise<void> {
    const active = new Map<string, Destination["subscription"]>();
    for (const one of await this.#deps.subscriptions.known()) {
      if (one.state === "active" && isPushed(one)) active.set(one.id, one);
    }
    const retired = [...this.#destinations.values()].filter(({ subscription: { id } }) => !active.has(id));
    for (const destination of retired) await this.#retire(destination);
    for (const [id, subscription] of active) {
      const known = this.#destinations.get(id);
      if (known === undefined) this.#destinations.set(id, { lane: new Lane(), subscription, recording: false });
      else known.subscription = subscription;
    }
  }

  /** Ends the delivery to a destination, and stores its cursors, so that accepted signals are not sent again after a pause. */
  async #retire(destination: Destination): Promise<void> {
    const { lane, subscription } = destination;
    await forEachConcurrently([...lane.lines], (line) => this.#advance(destination, line)).catch(
      this.#deps.events.onFailure,
    );
    lane.closeAll();
    if (this.#destinations.get(subscription.id) === destination) this.#destinations.delete(subscription.id);
  }

  /** Opens a line, the queue of a subscription in a partition, for each subscription in each partition whose lease this instance has. */
  async #openLines(): Promise<void> {
    const all = [...this.#destinations.values()];
    const missing = [...this.#held].filter(([partition]) => all.some(({ lane }) => lane.line(partition) === undefined));
    await forEachConcurrently(missing, async ([partition, { lease }]) => {
      const cursors = await this.#deps.log.cursors(partition);
      if (this.#held.get(partition)?.lease.fence !== lease.fence) return;
      for (const { lane, subscription } of all) {
        const cursor = cursors.get(subscription.id);
        if (cursor !== undefined && lane.line(partition) === undefined) lane.open(partition, cursor);
      }
    });
  }

  async #readNew(): Promise<void> {
    if (this.#held.size === 0) return;
    const ends = await this.#deps.log.ends();
    const behind = [...this.#held.keys()].filter(
      (partition) => this.#seen.get(partition) !== ends[partition] || this.#linesOf(partition).some(({ more }) => more),
    );
    await forEachConcurrently(behind, async (partition) => {
      if (await this.#read(partition)) this.#seen.set(partition, ends[partition]);
    });
  }

  /** Reads a partition for all subscriptions. A call during a reading causes another reading. @returns whether the partition was read */
  async #read(partition: number): Promise<boolean> {
    if (this.#reading.has(partition)) {
      this.#reading.set(partition, true);
      return false;
    }
    try {
      do {
        this.#reading.set(partition, false);
        await this.#readOnce(partition);
      } while (this.#reading.get(partition));
      return true;
    } finally {
      this.#reading.delete(partition);
    }
  }

  async #readOnce(partition: number): Promise<void> {
    const open: { readonly destination: Destination; readonly line: Line }[] = [];
    for (const destination of [...this.#destinations.values()]) {
      const line = destination.lane.line(partition);
      if (line === undefined) continue;
      // The cursor is stored after every MAX_LINE entries, so that few signals are delivered again after a crash.
      await this.#advance(destination, line, MAX_LINE);
      if (destination.lane.room(line) > 0) open.push({ destination, line });
      else line.more = true;
    }
    // Subscriptions at the same position share one reading.
    for (const [after, readers] of Map.groupBy(open, ({ line }) => line.position)) {
      const outcome = await this.#deps.log.read(
        partition,
        after,
        readers.some(({ destination: { subscription } }) => hasFilter(subscription)) ? FILTERED_LIMIT : MAX_LINE,
      );
      if (!outcome.ok && outcome.reason === "rewound") return this.#closeLines(partition);
      for (const { destination, line } of readers) {
        const { lane, subscription } = destination;
        if (!line.open) continue;
        if (outcome.ok) lane.add(line, outcome.signals, outcome.more, subscription.filter);
        else await this.#skipLost(destination, line, outcome);
        // If the filter has excluded signals, there is room for more, and the partition is read again at once.
        if (line.more && lane.room(line) > 0) this.#reading.set(partition, true);
        this.#dispatch.wake(destination);
      }
    }
  }

  /** If the log begins after the position of a subscription, reports the loss, and continues at the oldest entry. */
  async #skipLost(destination: Destination, line: Line, { oldest, lost }: Loss): Promise<void> {
    const { subscriptions, wallClock, events } = this.#deps;
    const { id } = destination.subscription;
    // The cursor is being stored, so the next round reads the line again.
    if (line.storing) return;
    destination.lane.skip(line, oldest, lost);
    await this.#advance(destination, line, 0).catch(events.onFailure);
    // The line is closed if another instance has the lease by now. That one reports the loss.
    if (!line.open) return;
    events.onLoss(id, lost);
    await subscriptions.recordAttempt(id, { error: "behind_retention", at: wallClock() });
  }

  /** Stores a subscription's cursor in a partition, if it has moved by at least `least` log entries since it was last stored. */
  async #advance({ lane, subscription }: Destination, line: Line, least?: number): Promise<void> {
    const progress = lane.progress(line, least);
    const lease = this.#held.get(line.partition)?.lease;
    if (progress === undefined || lease === undefined || !line.open || line.storing) return;
    line.storing = true;
    try {
      const outcome = await this.#deps.log.advance(lease, subscription.id, progress.to, progress.counts);
      if (outcome.ok) lane.stored(line, progress);
      else if (outcome.reason === "rewound") this.#closeLines(line.partition);
      else if (line.open) lane.close(line.partition);
    } finally {
      line.storing = false;
    }
  }

  #linesOf(partition: number): Line[] {
    return [...this.#destinations.values()].flatMap(({ lane }) => lane.line(partition) ?? []);
  }
}
