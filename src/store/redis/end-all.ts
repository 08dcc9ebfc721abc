/**
 * The end of all sessions of a subject, but one.
 *
 * Few of them end in one script. Of many, one script notes until when they were created (`horizon`), and by that all have ended:
 * every script that acts on a session compares it. Then their records, markers and entries in the log follow, a bounded number in
 * each script, so that none holds up all others for long. It is acknowledged when that is done, as verifiers know the log alone.
 *
 * The rest is done by the first that comes: another call for the same subject, one that ends a session of it, and every instance that finds
 * no progress between two readings of the log (log-reader.ts), since the instance that began it may be no more.
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

/** How often a script is tried again whose reply did not come, once all have ended, and when for the first time, ms. */
const RETRIES = 3;
const RETRY_MS = 50;

const ID_BYTES = 8;

/** What one script has done: how many have ended so far, and those that this script has ended. */
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
          await this.#acknowledge(tag, ended[0] === undefined ? [] : [`m${ended[0]}`]); // all of them in one step
          return { ok: true, ended, count: ended.length };
        }
        default:
          await this.#acknowledge(tag, []);
          return { ok: false, reason: "actor_ended" };
      }
    }
  }

  /** Does what is left of the ends that are under way in a partition. */
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

  /** All have ended already, and a part may be done twice: so a reply that does not come need not fail the whole. */
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
