import type { WallMs } from "../../session/time.ts";
import {
  type DeliveryError,
  MAX_SUBSCRIPTIONS,
  type Subscription,
  type SubscriptionDefinition,
  type SubscriptionState,
} from "../../signals/model.ts";
import type { DeliveryCounts, SubscriptionStore } from "../../signals/ports.ts";
import { subscriptionOf } from "../signal-text.ts";
import type { Link } from "./link.ts";
import { FIRST_TAG, TAGS } from "./partitions.ts";
import type { Acknowledge } from "./replicas.ts";
import { buffers, text } from "./replies.ts";
import type { Argument } from "./script-call.ts";
import type { RedisSignalLog } from "./signal-log.ts";

/** Prefix of the field with the part of a subscription that the service itself changes. */
const STATUS = "=";
const NONE: DeliveryCounts = { delivered: 0, deadLetters: 0 };

export class RedisSubscriptions implements SubscriptionStore {
  readonly #link: Pick<Link, "run">;
  readonly #acknowledge: Acknowledge;
  readonly #log: RedisSignalLog;
  readonly #retentionMs: number;

  constructor(link: Pick<Link, "run">, acknowledge: Acknowledge, log: RedisSignalLog, retentionMs: number) {
    this.#link = link;
    this.#acknowledge = acknowledge;
    this.#log = log;
    this.#retentionMs = retentionMs;
  }

  /**
   * Creates a subscription. Its row is written before its cursors, so a cursor without a row belongs to a deleted subscription. If the call
   * fails, a second call continues where the first one failed.
   */
  async create(id: string, definition: SubscriptionDefinition, createdAt: WallMs): Promise<boolean> {
    const args = [JSON.stringify(definition), createdAt, MAX_SUBSCRIPTIONS];
    const outcome = await this.#change("create", id, args);
    if (outcome !== "done") return false;
    await this.#addReaders(id, TAGS);
    // In a cluster, the readers are distributed over the nodes.
    await Promise.all([this.#acknowledge(FIRST_TAG, ["b"]), ...TAGS.map((tag) => this.#acknowledge(tag, ["f"]))]);
    return true;
  }

  async get(id: string): Promise<Subscription | undefined> {
    const [rows, readers] = await Promise.all([this.#rows(id), this.#log.readers(TAGS, id)]);
    return rows.get(id)?.(sum(readers.flatMap((each) => [...each])).get(id));
  }

  async list(): Promise<readonly Subscription[]> {
    const readers = await this.#log.readers(TAGS);
    const rows = await this.#rows();
    const counts = sum(readers.flatMap((each) => [...each]));
    return [...rows].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([id, row]) => row(counts.get(id)));
  }

  async known(): Promise<readonly Subscription[]> {
    return [...(await this.#rows()).values()].map((row) => row(NONE));
  }

  async repair(): Promise<void> {
    // The order matters: a row is written before its readers, and deleted before them.
    const readers = await this.#log.readers(TAGS);
    const rows = await this.#rows();
    const deleted = new Set(readers.flatMap((each) => [...each.keys()].filter((id) => !rows.has(id))));
    for (const id of deleted) await this.#removeReaders(id);
    for (const id of rows.keys()) {
      const missing = TAGS.filter((_, partition) => readers[partition]?.has(id) === false);
      if (missing.length > 0) await this.#addReaders(id, missing);
    }
  }

  /**
   * Returns, by id, functions that make a subscription from its counts.
   *
   * @param only the only one to read; all if absent
   */
  async #rows(only?: string): Promise<Map<string, (counts: DeliveryCounts | undefined) => Subscription>> {
    const args = only === undefined ? ["list", ""] : ["get", only];
    const reply = buffers(await this.#link.run("subscription", [FIRST_TAG], args)).map(String);
    const fields = new Map<string, string>();
    for (let at = 0; at < reply.length; at += 2) fields.set(reply[at] ?? "", reply[at + 1] ?? "");
    const ids = [...fields.keys()].filter((field) => !field.startsWith(STATUS));
    return new Map(
      ids.map((id) => {
        const definition = fields.get(id) ?? "";
        const status = parseStatus(fields.get(`${STATUS}${id}`) ?? "");
        return [id, (counts = NONE) => subscriptionOf(id, definition, status, counts)];
      }),
    );
  }

  define(id: string, definition: SubscriptionDefinition, before: SubscriptionDefinition): Promise<boolean> {
    return this.#changed("define", id, [JSON.stringify(definition), JSON.stringify(before)]);
  }

  setState(id: string, state: SubscriptionState, before?: SubscriptionState): Promise<boolean> {
    return this.#changed("state", id, [
      ...stateTexts(state),
      ...(before === undefined ? ["", ""] : stateTexts(before)),
    ]);
  }

  async restart(id: string): Promise<boolean> {
    if ((await this.get(id)) === undefined) return false;
    await this.#log.eachPartition("signal_reader", TAGS, ["restart", id, this.#retentionMs]);
    return true;
  }

  recordAttempt(id: string, failure: { readonly error: DeliveryError; readonly at: WallMs } | undefined) {
    return this.#changed("attempt", id, [failure?.error ?? "", failure?.at ?? ""]);
  }

  async delete(id: string): Promise<boolean> {
    const outcome = await this.#changed("delete", id, []);
    await this.#removeReaders(id);
    return outcome;
  }

  async #addReaders(id: string, tags: readonly string[]): Promise<void> {
    await this.#log.eachPartition("signal_reader", tags, ["add", id, this.#retentionMs]);
  }

  async #removeReaders(id: string): Promise<void> {
    await this.#log.eachPartition("signal_reader", TAGS, ["remove", id, this.#retentionMs]);
  }

  async #changed(verb: string, id: string, args: readonly Argument[]): Promise<boolean> {
    const outcome = await this.#change(verb, id, args);
    if (outcome === "done" && verb !== "delete") await this.#acknowledge(FIRST_TAG, ["b"]);
    return outcome === "done";
  }

  async #change(verb: string, id: string, args: readonly Argument[]): Promise<string> {
    return text(await this.#link.run("subscription", [FIRST_TAG], [verb, id, ...args]));
  }
}

function stateTexts(state: SubscriptionState): readonly string[] {
  return [state.state, state.state === "paused" ? state.because : ""];
}

function parseStatus(text: string) {
  const [createdAt, state = "", because = "", failures, lastError = "", lastErrorAt = ""] = text.split("\n");
  return { createdAt: Number(createdAt), state, because, failures: Number(failures), lastError, lastErrorAt };
}

function sum(
  readers: readonly (readonly [string, { readonly counts: DeliveryCounts }])[],
): Map<string, DeliveryCounts> {
  const counts = new Map<string, DeliveryCounts>();
  for (const [id, { counts: own }] of readers) {
    const { delivered, deadLetters } = counts.get(id) ?? NONE;
    counts.set(id, { delivered: delivered + own.delivered, deadLetters: deadLetters + own.deadLetters });
  }
  return counts;
}
