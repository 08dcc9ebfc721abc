/**
 * Searches for sessions that have expired. There is no index by expiry, because each refresh would have to update it. Instead an instance
 * reads the order of creation (lua/expire.lua) in spans of up to 64 sessions, and remembers for each span the time until which nothing in
 * it expires. That is safe because an expiry only moves later. So all sessions of a span are read when one of them expires, and at least
 * once an hour.
 */
import { randomBytes } from "node:crypto";
import type { ExpiredSession, ExpireOutcome } from "../../session/ports.ts";
import { EXPIRED_NOTE } from "../event-text.ts";
import { buffers, decodeNames, pairsOf, sessionId, text } from "./encoding/replies.ts";
import { TAGS } from "./partitions.ts";
import type { ScriptRunner } from "./script-runner.ts";

/** For how long no other instance examines a partition after one has done so, in ms. */
const LEASE_MS = 30_000;
/** The longest time until a span of sessions is read again, in ms. Clocks of nodes differ, so sessions may be added to it later. */
const MAX_UNSEEN_MS = 3_600_000;
/** How many partitions are examined at the same time. */
const AT_ONCE = 4;
/** The most scripts that one call of `step` runs, and the most sessions that it ends. Commands of callers run between these calls. */
const MAX_SCRIPTS = 64;
const MAX_ENDED = 1_000;
const ID_BYTES = 12;

/** A span of sessions in the order of creation: from the entry `from` up to the next span. Before `dueAt` none of them expires. */
type Span = { readonly from: Buffer | ""; dueAt: number };

/** What this instance knows about a partition. Times are those of the process's monotonic clock. */
type Partition = { readonly tag: string; spans: Span[]; heldUntil: number };

export class Expiry {
  readonly #runner: Pick<ScriptRunner, "run" | "now">;
  readonly #markerLifeMs: number;
  readonly #instance = randomBytes(ID_BYTES).toString("base64url");
  readonly #partitions = TAGS.map((tag): Partition => ({ tag, spans: unseen(), heldUntil: 0 }));
  /** The partitions that this search has not examined yet. When none is left, the next search begins with all partitions. */
  #left: Partition[] = [];
  /** The number of scripts that the present call of `step` has run. */
  #scripts = 0;

  constructor(runner: Pick<ScriptRunner, "run" | "now">, markerLifeMs: number) {
    this.#runner = runner;
    this.#markerLifeMs = markerLifeMs;
  }

  /** Ends some expired sessions. @throws StoreUnavailable if none of the examined partitions is available */
  async step(): Promise<ExpireOutcome> {
    if (this.#left.length === 0) this.#left = [...this.#partitions];
    this.#scripts = 0;
    const ended: ExpiredSession[] = [];
    while (this.#left.length > 0 && !this.#isLong(ended)) {
      const some = this.#left.splice(0, AT_ONCE);
      const results = await Promise.allSettled(some.map((partition) => this.#examine(partition, ended)));
      const failed = results.filter((result) => result.status === "rejected");
      if (failed.length === results.length) {
        this.#left = [];
        if (ended.length === 0) throw failed[0]?.reason;
      }
      for (const [at, result] of results.entries()) {
        const partition = some[at];
        if (partition !== undefined && result.status === "fulfilled" && !result.value) this.#left.push(partition);
      }
    }
    return { ended, isDone: this.#left.length === 0 };
  }

  /** Examines the spans of a partition in which a session may have expired by now. @returns false if a later call must examine the rest */
  async #examine(partition: Partition, ended: ExpiredSession[]): Promise<boolean> {
    const { spans } = partition;
    if (this.#runner.now() < partition.heldUntil) return true;
    for (let at = 0; at < spans.length; at++) {
      const span = spans[at];
      if (span === undefined || (at < spans.length - 1 && this.#runner.now() < span.dueAt)) continue;
      if (this.#isLong(ended)) return false;
      const next = await this.#examineSpan(partition, span, spans[at + 1]?.from ?? "", ended);
      if (next === undefined) return true;
      const isEmpty = span.dueAt === Number.POSITIVE_INFINITY;
      span.dueAt = Math.min(span.dueAt, this.#runner.now() + MAX_UNSEEN_MS);
      if (next.length > 0) {
        spans.splice(at + 1, 0, { from: next, dueAt: 0 });
      } else if (isEmpty && at > 0 && at < spans.length - 1) {
        spans.splice(at, 1); // The span is empty, so it is removed. The previous span then extends to the next span.
        at--;
      }
    }
    return true;
  }

  #isLong(ended: readonly ExpiredSession[]): boolean {
    return this.#scripts >= MAX_SCRIPTS || ended.length >= MAX_ENDED;
  }

  /** Examines one span of sessions. @returns where the next begins, '' if none; undefined if another instance examines the partition */
  async #examineSpan(partition: Partition, span: Span, to: Buffer | "", ended: ExpiredSession[]) {
    this.#scripts++;
    const args = [this.#instance, LEASE_MS, span.from, to, this.#markerLifeMs, EXPIRED_NOTE] as const;
    const reply = buffers(await this.#runner.run("expire", [partition.tag], args));
    const [state, rest = Buffer.alloc(0), least = rest, ...gone] = reply;
    const now = this.#runner.now();
    if (state === undefined || text(state) === "held") {
      partition.spans = unseen();
      partition.heldUntil = now + Number(text(rest));
      return undefined;
    }
    span.dueAt = least.length === 0 ? Number.POSITIVE_INFINITY : now + Number(text(least));
    for (const [sid, names] of pairsOf(gone)) {
      const { subject, actor } = decodeNames(names);
      ended.push({ sid: sessionId(sid), subject: subject || undefined, actor });
    }
    return rest;
  }
}

function unseen(): Span[] {
  return [{ from: "", dueAt: 0 }];
}
