import type { SessionId } from "../../session/model.ts";
import { storeMs } from "../../session/time.ts";
import { noticesOf, type SignalFilter } from "../../signals/model.ts";
import type {
  Cursor,
  DeliveryCounts,
  LoggedSignal,
  ReadOutcome,
  SignalLog,
  WaitingSignal,
} from "../../signals/ports.ts";
import { cursorOf, NO_CURSOR, NO_SESSION, positionOf, signalOf } from "../signal-text.ts";
import type { ArgumentsOf, Verb } from "./encoding/arguments.ts";
import { buffers, decodeNames, pairsOf, text } from "./encoding/replies.ts";
import { slicesOf, TAGS, tagOfSession, tagOfSubject } from "./partitions.ts";
import type { ScriptRunner } from "./script-runner.ts";

/** How many partitions one run of a script handles, for the scripts that may have a lot to do in each partition. */
const AT_ONCE: Partial<Record<Verb, number>> = { signal_cursors: 4, signal_reader: 1 };
/** How many partitions one run of a script handles, if it reads the cursors of only one subscription. */
const AT_ONCE_OF_ONE = 128;

const NUMBER_OF = new Map(TAGS.map((tag, number) => [tag, number]));

/** A stored cursor with its counters: '<number> <sid> <delivered> <dead letters>'. */
type Reader = { readonly cursor: Cursor; readonly counts: DeliveryCounts };

/** The signal log, and the operations on several partitions that subscriptions.ts needs. */
export type RedisSignalLog = SignalLog & {
  /** Returns the readers of partitions, by subscription. @param subscription the only one to read; all if absent */
  readers(tags: readonly string[], subscription?: string): Promise<readonly ReadonlyMap<string, Reader>[]>;
  /** Changes the readers of partitions, all by default, that belong to a subscription. @param filter wants the notices that are logged */
  changeReaders(
    verb: "add" | "restart" | "remove",
    subscription: string,
    filter?: SignalFilter,
    tags?: readonly string[],
  ): Promise<unknown>;
};

type PartitionsRunner = Pick<ScriptRunner, "run" | "clustered">;

export function createSignalLog(runner: PartitionsRunner, retentionMs: number): RedisSignalLog {
  const readers: RedisSignalLog["readers"] = (tags, subscription) => readReaders(runner, tags, subscription);
  const lease: SignalLog["lease"] = async (numbers, holder, ms) => {
    const fences = await eachPartition(runner, "signal_lease", numbers.map(tagOfNumber), [holder, ms, retentionMs]);
    const leases = numbers.map((partition, at) => ({ partition, holder, fence: Number(fences[at]) }));
    return leases.filter(({ fence }) => fence > 0);
  };

  return {
    readers,
    partitions: TAGS.length,
    partitionOf: ({ sid }) => NUMBER_OF.get(tagOfSession(sid)) ?? 0,
    lease,

    async release(leases) {
      for (const [holder, held] of Map.groupBy(leases, (lease) => lease.holder)) {
        const numbers = held.map(({ partition }) => partition);
        await lease(numbers, holder, 0);
      }
    },

    async ends() {
      return (await eachPartition(runner, "signal_ends", TAGS, [])) as readonly Cursor[];
    },

    async read(partition, after, limit) {
      const { number, sid } = positionOf(after);
      const reply = buffers(await runner.run("signals", [tagOfNumber(partition)], [number, sid, limit]));
      return parseRead(reply, number);
    },

    async cursors(partition) {
      const [found] = await readers([tagOfNumber(partition)]);
      return new Map([...(found ?? [])].map(([id, { cursor }]) => [id, cursor]));
    },

    async advance({ holder, fence, partition }, subscription, to, { delivered, deadLetters }) {
      const { number, sid } = positionOf(to);
      const args = [holder, fence, subscription, number, sid, delivered, deadLetters] as const;
      const outcome = text(await runner.run("signal_advance", [tagOfNumber(partition)], args));
      return outcome === "moved" ? { ok: true } : { ok: false, reason: outcome === "rewound" ? "rewound" : "lost" };
    },

    oldestWaiting: () => readOldestWaiting(runner),

    async ofSubject(subject, after, limit) {
      const { next, found } = await readSignalsOf(runner, subject, after, limit, "read");
      const signals = found.map(([bytes, ids]) => ({ signal: parseSignal(bytes).signal, unreadBy: ids }));
      return { signals, next };
    },

    async positions(subscription) {
      const found = await readers(TAGS, subscription);
      return found.map((of) => of.get(subscription)?.cursor ?? NO_CURSOR);
    },

    changeReaders(verb, subscription, filter = {}, tags = TAGS) {
      const notices = noticesOf(filter).map((notice) => ` ${notice}`);
      return eachPartition(runner, "signal_reader", tags, [verb, subscription, retentionMs, notices.join("")]);
    },

    async pass(partition, subscription, from, to, { delivered, deadLetters }) {
      const { number, sid } = positionOf(to);
      const args = ["", from, subscription, number, sid, delivered, deadLetters] as const;
      return text(await runner.run("signal_advance", [tagOfNumber(partition)], args)) === "moved";
    },
  };
}

/** Runs a script on as many partitions at once as take less than about 3 ms. In a cluster, it runs on each partition separately. */
async function runOnPartitions<V extends Verb>(
  runner: PartitionsRunner,
  verb: V,
  tags: readonly string[],
  args: ArgumentsOf<V>,
  atOnce = AT_ONCE[verb] ?? tags.length,
): Promise<string[][]> {
  const slices = slicesOf(runner, atOnce, tags);
  return Promise.all(slices.map(async (slice) => buffers(await runner.run(verb, slice, args)).map(String)));
}

/** Runs a script that returns one text for each partition. */
async function eachPartition<V extends Verb>(
  runner: PartitionsRunner,
  verb: V,
  tags: readonly string[],
  args: ArgumentsOf<V>,
): Promise<readonly string[]> {
  const replies = await runOnPartitions(runner, verb, tags, args);
  // In a cluster, each reply has a second text, for a key that belongs to no partition (script-runner.ts).
  return runner.clustered ? replies.map(([own = ""]) => own) : replies.flat();
}

async function readReaders(runner: PartitionsRunner, tags: readonly string[], subscription = "") {
  const atOnce = subscription === "" ? undefined : AT_ONCE_OF_ONE;
  const replies = await runOnPartitions(runner, "signal_cursors", tags, [subscription], atOnce);
  // In a cluster, every second key belongs to no partition (script-runner.ts), and so does every second map.
  return replies.flatMap((texts) => parseReaders(texts).slice(0, runner.clustered ? 1 : undefined));
}

async function readOldestWaiting(runner: Pick<ScriptRunner, "run">): Promise<ReadonlyMap<string, WaitingSignal>> {
  const oldest = new Map<string, WaitingSignal>();
  const parts = await Promise.all(TAGS.map(async (tag) => buffers(await runner.run("signal_waiting", [tag], []))));
  for (const texts of parts) {
    for (const [id, signal] of pairsOf(texts.map(String))) {
      const [sid, happenedAt, count] = signal.split(" ");
      const found = { sessionId: sid as SessionId, happenedAt: storeMs(Number(happenedAt)), count: Number(count) };
      const other = oldest.get(id) ?? { ...found, count: 0 };
      oldest.set(id, { ...(other.happenedAt <= found.happenedAt ? other : found), count: other.count + found.count });
    }
  }
  return oldest;
}

/** Runs lua/signals_of.lua. @param then whether the subject is removed from the signals that are found */
export async function readSignalsOf(
  runner: Pick<ScriptRunner, "run">,
  subject: string,
  after: number,
  limit: number,
  then: "read" | "forget",
): Promise<{ readonly next: number | undefined; readonly found: readonly (readonly [Buffer, readonly string[]])[] }> {
  const [next, ...texts] = buffers(
    await runner.run("signals_of", [tagOfSubject(subject)], [subject, after, limit, then]),
  );
  const found = pairsOf(texts).map(([signal, ids]) => [signal, text(ids).split(" ").filter(Boolean)] as const);
  return { next: next?.length ? Number(text(next)) : undefined, found };
}

/** @param number the number of the last signal before those that were requested */
function parseRead([outcome, ...found]: readonly Buffer[], number: number): ReadOutcome {
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

function tagOfNumber(partition: number): string {
  const tag = TAGS[partition];
  if (tag === undefined) throw new RangeError(`no partition ${partition}`);
  return tag;
}

const WITH_ACTOR = /^0\d/;

/**
 * Parses '<number> <sid> <ended at> <reason> <length of the client id, bytes> <client id><subject>', with the actor in a line of its own if
 * the time begins with 0.
 */
function parseSignal(bytes: Buffer): LoggedSignal {
  const head = /^(\d+) (\S+) (\d+) (\S+) (\d+) /.exec(bytes.toString("latin1"));
  if (head === null) throw new TypeError("no signal of this service");
  const [all, number, sid, happenedAt, reason = "", length] = head;
  const [start, end] = [all.length, all.length + Number(length)];
  const signal = signalOf({
    sid: sid as SessionId,
    reason,
    happenedAt: Number(happenedAt),
    client: bytes.toString("utf8", start, end),
    ...(WITH_ACTOR.test(happenedAt ?? "")
      ? decodeNames(bytes.subarray(end))
      : { subject: bytes.toString("utf8", end) }),
  });
  return { signal, cursor: cursorOf({ number: Number(number), sid: sid as SessionId }) };
}

function parseReaders(texts: readonly string[]): ReadonlyMap<string, Reader>[] {
  const found: Map<string, Reader>[] = [];
  for (let at = 0, end = 0; at < texts.length; at = end) {
    end = at + 1 + Number(texts[at]);
    const readers = pairsOf(texts.slice(at + 1, end)).filter(([id]) => id !== "*");
    found.push(new Map(readers.map(([id, value]) => [id, parseReader(value)])));
  }
  return found;
}

function parseReader(value: string): Reader {
  const [number, sid = NO_SESSION, delivered, deadLetters] = value.split(" ");
  const counts = { delivered: Number(delivered), deadLetters: Number(deadLetters) };
  return { cursor: cursorOf({ number: Number(number), sid }), counts };
}
