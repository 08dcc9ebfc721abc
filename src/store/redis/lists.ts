/** Lists sessions page by page: those of a subject, or all. */
import { EVERY_SESSION, type SessionFilter } from "../../session/filter.ts";
import type { SessionPage } from "../../session/ports.ts";
import { search, startOf } from "../search.ts";
import { countSessions } from "./count.ts";
import { CreationOrder } from "./creation-order.ts";
import type { Link } from "./link.ts";
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
    const order = new SubjectOrder(this.#link, subject, startOf(from, filter));
    return search((count) => order.take(count), limit, filter);
  }

  async ofAll(limit: number, from: string | undefined, filter: SessionFilter): Promise<SessionPage> {
    const order = new CreationOrder(this.#link, this.#clustered, startOf(from, filter));
    return search((count) => order.take(count), limit, filter);
  }

  /** Returns approximately how many sessions are live. */
  count(): Promise<number> {
    return countSessions(this.#link, this.#clustered);
  }
}
