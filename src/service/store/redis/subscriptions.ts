import { MAX_SUBSCRIPTIONS, noticesOf, type Subscription, type SubscriptionState } from "../../signals/model.ts";
import type { DeliveryCounts, SubscriptionStore } from "../../signals/ports.ts";
import { subscriptionOf } from "../signal-text.ts";
import type { ArgumentsOf } from "./encoding/arguments.ts";
import { buffers, pairsOf, text } from "./encoding/replies.ts";
import { KEY } from "./keys.ts";
import { FIRST_TAG, TAGS } from "./partitions.ts";
import type { Acknowledge } from "./replicas.ts";
import type { ScriptRunner } from "./script-runner.ts";
import type { RedisSignalLog } from "./signal-log.ts";

/** The prefix of the fields that have the status of a subscription, the part that the service, not an operator, changes. */
const STATUS = "=";
const NONE: DeliveryCounts = { delivered: 0, deadLetters: 0 };

export function createSubscriptions(
  runner: Pick<ScriptRunner, "run">,
  acknowledge: Acknowledge,
  log: RedisSignalLog,
): SubscriptionStore {
  const change = async (...args: ArgumentsOf<"subscription">): Promise<boolean> =>
    text(await runner.run("subscription", [FIRST_TAG], args)) === "done";
  const changeDurably = async (...args: ArgumentsOf<"subscription">): Promise<boolean> => {
    const isDone = await change(...args);
    if (isDone) await acknowledge(FIRST_TAG, [KEY.subscriptions]);
    return isDone;
  };
  const get = async (id: string): Promise<Subscription | undefined> => {
    const [rows, readers] = await Promise.all([readRows(runner, id), log.readers(TAGS, id)]);
    return rows.get(id)?.(sum(readers).get(id));
  };

  return {
    get,

    /**
     * Creates a subscription. Its definition is written before its cursors, so a cursor without a definition belongs to a deleted
     * subscription. If the call fails, a second call continues where the first one failed.
     */
    async create(id, definition, createdAt) {
      if (!(await change("create", id, JSON.stringify(definition), createdAt, MAX_SUBSCRIPTIONS))) return false;
      await log.changeReaders("add", id, definition.filter);
      // The cursors are in all partitions, and those are on several nodes in a cluster. So the replicas of every node must have them.
      await Promise.all([
        acknowledge(FIRST_TAG, [KEY.subscriptions]),
        ...TAGS.map((tag) => acknowledge(tag, [KEY.signal_readers])),
      ]);
      return true;
    },

    async list() {
      const counts = sum(await log.readers(TAGS));
      const rows = await readRows(runner);
      return [...rows].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([id, row]) => row(counts.get(id)));
    },

    async known() {
      return [...(await readRows(runner)).values()].map((row) => row());
    },

    repair: () => repair(runner, log),

    // The signals that the new definition wants beside endings are logged from before it is written until the subscription is deleted. If a
    // later definition does not want them any more, its filter leaves them out.
    async define(id, definition, before) {
      if (noticesOf(definition.filter).length > 0) await log.changeReaders("add", id, definition.filter);
      return changeDurably("define", id, JSON.stringify(definition), JSON.stringify(before));
    },

    setState: (id, state, before) => changeDurably("state", id, ...stateTexts(state), ...stateTexts(before)),
    recordAttempt: (id, failure) => changeDurably("attempt", id, failure?.error ?? "", failure?.at ?? ""),

    async restart(id) {
      if ((await get(id)) === undefined) return false;
      await log.changeReaders("restart", id);
      return true;
    },

    async delete(id) {
      const isDeleted = await change("delete", id);
      await log.changeReaders("remove", id);
      return isDeleted;
    },
  };
}

async function repair(runner: Pick<ScriptRunner, "run">, log: RedisSignalLog): Promise<void> {
  // A definition is written before its cursors. So the cursors are read first: in the other order, a subscription that is created in
  // between would have cursors and no definition, and would be taken for a deleted one.
  const readers = await log.readers(TAGS);
  const rows = await readRows(runner);
  const deleted = new Set(readers.flatMap((each) => [...each.keys()].filter((id) => !rows.has(id))));
  for (const id of deleted) await log.changeReaders("remove", id);
  for (const [id, row] of rows) {
    const missing = TAGS.filter((_, partition) => readers[partition]?.has(id) === false);
    if (missing.length > 0) await log.changeReaders("add", id, row().filter, missing);
  }
}

/** Returns, for each subscription id, a function that makes the subscription from its counts. @param only the only one to read, if given */
async function readRows(
  runner: Pick<ScriptRunner, "run">,
  only?: string,
): Promise<Map<string, (counts?: DeliveryCounts) => Subscription>> {
  const args = only === undefined ? (["list", ""] as const) : (["get", only] as const);
  const fields = new Map(pairsOf(buffers(await runner.run("subscription", [FIRST_TAG], args)).map(String)));
  const ids = [...fields.keys()].filter((field) => !field.startsWith(STATUS));
  return new Map(
    ids.map((id) => {
      const definition = fields.get(id) ?? "";
      const status = parseStatus(fields.get(`${STATUS}${id}`) ?? "");
      return [id, (counts = NONE) => subscriptionOf(id, definition, status, counts)];
    }),
  );
}

function stateTexts(state: SubscriptionState | undefined): readonly string[] {
  return [state?.state ?? "", state?.state === "paused" ? state.because : ""];
}

function parseStatus(text: string) {
  const [createdAt, state = "", because = "", failures, lastError = "", lastErrorAt = ""] = text.split("\n");
  return { createdAt: Number(createdAt), state, because, failures: Number(failures), lastError, lastErrorAt };
}

function sum(partitions: Awaited<ReturnType<RedisSignalLog["readers"]>>): Map<string, DeliveryCounts> {
  const counts = new Map<string, DeliveryCounts>();
  for (const [id, { counts: own }] of partitions.flatMap((readers) => [...readers])) {
    const { delivered, deadLetters } = counts.get(id) ?? NONE;
    counts.set(id, { delivered: delivered + own.delivered, deadLetters: deadLetters + own.deadLetters });
  }
  return counts;
}
