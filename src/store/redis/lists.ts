/** Pages of sessions: of a subject, or of all. */
import { byEarlierClock, EVERY_SESSION, type SessionFilter } from "../../session/filter.ts";
import type { SessionPage } from "../../session/ports.ts";
import { search, startOf } from "../search.ts";
import { pageByClock } from "../shifted.ts";
import { countSessions } from "./count.ts";
import { CreationOrder } from "./creation-order.ts";
import type { Link } from "./link.ts";
import { TAGS, tagOfSubject } from "./partitions.ts";
import { SubjectOrder } from "./subject-order.ts";

export class SessionLists {
  readonly #link: Link;
  readonly #clustered: boolean;

  constructor(link: Link, clustered: boolean) {
    this.#link = link;
    this.#clustered = clustered;
  }

  async ofSubject(
    subject: string,
    limit: number,
    from: string | undefined,
    filter: SessionFilter = EVERY_SESSION,
  ): Promise<SessionPage> {
    const { shift } = this.#link.clock(tagOfSubject(subject));
    const wanted = byEarlierClock(filter, shift);
    const order = new SubjectOrder(this.#link, subject, startOf(from, wanted));
    return pageByClock(await search((count) => order.take(count), limit, wanted), shift);
  }

  /** One time for all partitions: nodes' clocks differ by little. */
  async ofAll(limit: number, from: string | undefined, filter: SessionFilter): Promise<SessionPage> {
    const { shift } = this.#link.clock(TAGS[0] ?? "");
    const wanted = byEarlierClock(filter, shift);
    const order = new CreationOrder(this.#link, this.#clustered, startOf(from, wanted));
    return pageByClock(await search((count) => order.take(count), limit, wanted), shift);
  }

  /** All live sessions, about. */
  count(): Promise<number> {
    return countSessions(this.#link, this.#clustered);
  }
}
