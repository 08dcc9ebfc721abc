/**
 * Ends all sessions of a subject, or all but one.
 *
 * A few sessions end in one script. To end many, one script notes the time of creation up to which they end (`horizon`). From then on all
 * of them have ended, because every script that acts on a session compares its creation with that time. Further scripts delete the
 * records and write the markers and log entries, a bounded number each, so that no script delays other commands for long. The end is
 * acknowledged when this is done, because verifiers only read the log. If the instance that began it dies, others continue it: another
 * call for the same subject, a call that ends a session of it, or an instance that finds no progress between two readings of the log
 * (log-reader.ts).
 */
import { randomBytes } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import type { EndReason, SessionId } from "../../session/model.ts";
import { type EndAllOptions, type EndAllOutcome, StoreUnavailable } from "../../session/ports.ts";
import { noteOf, RECORDED_WITHIN_MS } from "../due-text.ts";
import type { Link } from "./link.ts";
import { tagOfSubject } from "./partitions.ts";
import type { Acknowledge } from "./replicas.ts";
import { buffers, sessionId, text } from "./replies.ts";

/** How often a script is run again if its reply did not arrive after all sessions have ended, and the first delay in ms. */
const RETRIES = 3;
const RETRY_MS = 50;

const ID_BYTES = 8;

/** What one script has done: how many sessions have ended so far, and the ids of those that this script has ended. */
type Part = { readonly state: "more" | "done" | "none"; readonly count: number; readonly ended: readonly SessionId[] };

export class SubjectEnds {
  readonly #link: Pick<Link, "run">;
  readonly #acknowledge: Acknowledge;
  readonly #markerLifeMs: number;

  constructor(link: Pick<Link, "run">, acknowledge: Acknowledge, markerLifeMs: number) {
    this.#link = link;
    this.#acknowledge = acknowledge;
    this.#markerLifeMs = markerLifeMs;
  }

  async endAll(subject: string, reason: EndReason, { except, actor, origin }: EndAllOptions): Promise<EndAllOutcome> {
    const tag = tagOfSubject(subject);
    const id = randomBytes(ID_BYTES).toString("base64url");
    const args = [subject, reason, this.#markerLifeMs, except ?? "", actor ?? "", id, noteOf(origin)];
    for (;;) {
      const [outcome, ...sids] = buffers(await this.#link.run("end_all", [tag], args));
      switch (text(outcome)) {
        case "again":
          continue;
        case "busy":
          await this.#part(tag, "");
          continue;
        case "begun":
          return this.#endMany(tag, id);
        case "ended": {
          const ended = sids.map(sessionId);
          // One script has ended all sessions, so one acknowledgement covers them.
          await this.#acknowledge(tag, ended[0] === undefined ? [] : [`m${ended[0]}`]);
          return { ok: true, ended, count: ended.length };
        }
        default:
          await this.#acknowledge(tag, []);
          return { ok: false, reason: "actor_ended" };
      }
    }
  }

  /** Finishes the ends that are under way in a partition. */
  async finish(tag: string): Promise<void> {
    let part: Part;
    do {
      part = await this.#part(tag, "");
    } while (part.state !== "none");
  }

  async #endMany(tag: string, id: string): Promise<EndAllOutcome> {
    const ended: SessionId[] = [];
    const startedAt = performance.now();
    for (;;) {
      const part = await this.#partOrRetry(tag, id);
      if (part.state === "none") throw new StoreUnavailable("Redis: an end of many sessions was lost in a failover");
      for (const sid of part.ended) ended.push(sid);
      if (part.state === "more") continue;
      await this.#acknowledge(tag, [`d${id}`]);
      const isLate = performance.now() - startedAt > RECORDED_WITHIN_MS;
      return { ok: true, ended: isLate ? [] : ended, count: part.count };
    }
  }

  /**
   * Runs one part, and runs it again if the reply does not arrive. That is safe, because all sessions have ended already and a part may
   * be done twice.
   */
  async #partOrRetry(tag: string, id: string): Promise<Part> {
    for (let failures = 0; ; failures++) {
      try {
        return await this.#part(tag, id);
      } catch (error) {
        if (failures === RETRIES || !(error instanceof StoreUnavailable)) throw error;
        await delay(RETRY_MS << failures);
      }
    }
  }

  async #part(tag: string, id: string): Promise<Part> {
    const [state, count, ...sids] = buffers(await this.#link.run("end_rest", [tag], [id, this.#markerLifeMs]));
    return { state: text(state) as Part["state"], count: Number(count && text(count)), ended: sids.map(sessionId) };
  }
}
