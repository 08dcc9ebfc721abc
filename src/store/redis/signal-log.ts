import type { Revocation, SessionId } from "../../session/model.ts";
import { storeMs } from "../../session/time.ts";
import type {
  AdvanceOutcome,
  Cursor,
  DeliveryCounts,
  Lease,
  LoggedSignal,
  ReadOutcome,
  SignalLog,
  WaitingSignal,
} from "../../signals/ports.ts";
import { cursorOf, NO_SESSION, positionOf, signalOf } from "../signal-text.ts";
import type { Link } from "./link.ts";
import { TAGS, tagOfSession } from "./partitions.ts";
import { buffers, text } from "./replies.ts";
import type { Argument } from "./script-call.ts";
import type { Verb } from "./scripts.ts";

/** How many partitions one script takes if it may have a lot to do in each. */
const AT_ONCE: Partial<Record<Verb, number>> = { signal_cursors: 4, signal_reader: 1 };
/** How many partitions one script takes if it reads the cursors of one subscription. */
const AT_ONCE_OF_ONE = 128;

const NUMBER_OF = new Map(TAGS.map((tag, number) => [tag, number]));

/** Stands for the cursor of a subscription that does not exist. */
const NO_CURSOR = "" as Cursor;

/** A stored cursor with its counters: '<number> <sid> <delivered> <dead letters>'. */
type Reader = { readonly cursor: Cursor; readonly counts: DeliveryCounts };

export class RedisSignalLog implements SignalLog {
  readonly partitions = TAGS.length;
  readonly #link: Pick<Link, "run">;
  readonly #clustered: boolean;
  readonly #retentionMs: number;

  constructor(link: Pick<Link, "run">, clustered: boolean, retentionMs: number) {
    this.#link = link;
    this.#clustered = clustered;
    this.#retentionMs = retentionMs;
  }

  partitionOf({ sid }: Pick<Revocation, "sid">): number {
    return NUMBER_OF.get(tagOfSession(sid)) ?? 0;
  }

  async lease(partitions: readonly number[], holder: string, ms: number): Promise<readonly Lease[]> {
    const tags = partitions.map(tagOfNumber);
    const fences = await this.eachPartition("signal_lease", tags, [holder, ms, this.#retentionMs]);
    const leases = partitions.map((partition, at) => ({ partition, holder, fence: Number(fences[at]) }));
    return leases.filter(({ fence }) => fence > 0);
  }

  async release(leases: readonly Lease[]): Promise<void> {
    for (const [holder, held] of Map.groupBy(leases, (lease) => lease.holder)) {
      await this.lease(
        held.map(({ partition }) => partition),
        holder,
        0,
      );
    }
  }

  async ends(): Promise<readonly Cursor[]> {
    return (await this.eachPartition("signal_ends", TAGS, [])) as readonly Cursor[];
  }

  async read(partition: number, after: Cursor, limit: number): Promise<ReadOutcome> {
    const { number, sid } = positionOf(after);
    const reply = buffers(await this.#link.run("signals", [tagOfNumber(partition)], [number, sid, limit]));
    const [outcome, ...found] = reply;
    switch (text(outcome)) {
      case "rewound":
        return { ok: false, reason: "rewound" };
      case "behind": {
        const before = Number(text(found[0])) - 1;
        const oldest = cursorOf({ number: before, sid: NO_SESSION });
        return { ok: false, reason: "behind", oldest, lost: before - number };
      }
      default:
        return { ok: true, signals: found.map(parseSignal), more: text(outcome) === "more" };
    }
  }

  async cursors(partition: number): Promise<ReadonlyMap<string, Cursor>> {
    const [readers] = await this.readers([tagOfNumber(partition)]);
    return new Map([...(readers ?? [])].map(([id, { cursor }]) => [id, cursor]));
  }

  async advance(lease: Lease, subscription: string, to: Cursor, counts: DeliveryCounts): Promise<AdvanceOutcome> {
    const { number, sid } = positionOf(to);
    const args = [lease.holder, lease.fence, subscription, number, sid, counts.delivered, counts.deadLetters];
    const outcome = text(await this.#link.run("signal_advance", [tagOfNumber(lease.partition)], args));
    return outcome === "moved" ? { ok: true } : { ok: false, reason: outcome === "rewound" ? "rewound" : "lost" };
  }

  async oldestWaiting(): Promise<ReadonlyMap<string, WaitingSignal>> {
    const oldest = new Map<string, WaitingSignal>();
    const parts = await Promise.all(
      TAGS.map(async (tag) => buffers(await this.#link.run("signal_waiting", [tag], []))),
    );
    for (const texts of parts) {
      for (let at = 0; at < texts.length; at += 2) {
        const [id, signal = ""] = [String(texts[at]), String(texts[at + 1])];
        const [sid, endedAt] = signal.split(" ");
        const waiting = { sessionId: sid as SessionId, endedAt: storeMs(Number(endedAt)) };
        if (waiting.endedAt < (oldest.get(id)?.endedAt ?? Number.POSITIVE_INFINITY)) oldest.set(id, waiting);
      }
    }
    return oldest;
  }

  async positions(subscription: string): Promise<readonly Cursor[]> {
    const readers = await this.readers(TAGS, subscription);
    return readers.map((of) => of.get(subscription)?.cursor ?? NO_CURSOR);
  }

  async pass(partition: number, subscription: string, from: Cursor, to: Cursor, counts: DeliveryCounts) {
    const { number, sid } = positionOf(to);
    const args = ["", from, subscription, number, sid, counts.delivered, counts.deadLetters];
    return text(await this.#link.run("signal_advance", [tagOfNumber(partition)], args)) === "moved";
  }

  /** Returns the readers of partitions, by subscription. @param subscription the only one to read; all if absent */
  async readers(tags: readonly string[], subscription = ""): Promise<readonly ReadonlyMap<string, Reader>[]> {
    const atOnce = subscription === "" ? undefined : AT_ONCE_OF_ONE;
    const texts = await this.#run("signal_cursors", tags, [subscription], atOnce);
    // In a cluster every second map is that of a key that stands for no partition (link.ts).
    return texts.flatMap((slot) => parseReaders(slot).slice(0, this.#clustered ? 1 : undefined));
  }

  /** Returns one text for each partition. */
  async eachPartition(verb: Verb, tags: readonly string[], args: readonly Argument[]): Promise<readonly string[]> {
    const replies = await this.#run(verb, tags, args);
    // In a cluster the reply has a second text, for the key that stands for no partition (link.ts).
    return this.#clustered ? replies.map(([own = ""]) => own) : replies.flat();
  }

  /** Runs a script on as many partitions at once as take less than some 3 ms, or in a cluster on each of them. */
  #run(
    verb: Verb,
    tags: readonly string[],
    args: readonly Argument[],
    atOnce = AT_ONCE[verb] ?? tags.length,
  ): Promise<readonly (readonly string[])[]> {
    const slots = slicesOf(tags, this.#clustered ? 1 : atOnce);
    return Promise.all(
      slots.map(async (slot) => (slot.length === 0 ? [] : buffers(await this.#link.run(verb, slot, args)).map(String))),
    );
  }
}

function slicesOf(tags: readonly string[], size: number): readonly (readonly string[])[] {
  return Array.from({ length: Math.ceil(tags.length / size) }, (_, at) => tags.slice(at * size, (at + 1) * size));
}

function tagOfNumber(partition: number): string {
  const tag = TAGS[partition];
  if (tag === undefined) throw new RangeError(`no partition ${partition}`);
  return tag;
}

/** Parses '<number> <sid> <ended at> <reason> <length of the client id, bytes> <client id><subject>'. */
function parseSignal(bytes: Buffer): LoggedSignal {
  const head = /^(\d+) (\S+) (\d+) (\S+) (\d+) /.exec(bytes.toString("latin1"));
  if (head === null) throw new TypeError("no signal of this service");
  const [all, number, sid, endedAt, reason = "", length] = head;
  const [start, end] = [all.length, all.length + Number(length)];
  const signal = signalOf({
    sid: sid as SessionId,
    reason,
    endedAt: Number(endedAt),
    client: bytes.toString("utf8", start, end),
    subject: bytes.toString("utf8", end),
  });
  return { signal, cursor: cursorOf({ number: Number(number), sid: sid as SessionId }) };
}

function parseReaders(texts: readonly string[]): ReadonlyMap<string, Reader>[] {
  const found: Map<string, Reader>[] = [];
  for (let at = 0; at < texts.length; ) {
    const end = at + 1 + Number(texts[at]);
    const readers = new Map<string, Reader>();
    for (at++; at < end; at += 2) {
      const [id = "", value = ""] = [texts[at], texts[at + 1]];
      if (id !== "*") readers.set(id, parseReader(value));
    }
    found.push(readers);
  }
  return found;
}

function parseReader(value: string): Reader {
  const [number, sid = NO_SESSION, delivered, deadLetters] = value.split(" ");
  const counts = { delivered: Number(delivered), deadLetters: Number(deadLetters) };
  return { cursor: cursorOf({ number: Number(number), sid }), counts };
}
