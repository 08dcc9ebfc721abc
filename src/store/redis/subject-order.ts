/** Lists the sessions of a subject in order of creation, newest first. */
import type { Session } from "../../session/model.ts";
import { afterPosition, type PagePosition } from "../page.ts";
import type { Candidate } from "../search.ts";
import { entryOf, positionOf } from "./creation-order.ts";
import type { Link } from "./link.ts";
import { tagOfSubject } from "./partitions.ts";
import { decodeSession } from "./record.ts";
import { buffers, listed, text } from "./replies.ts";

export class SubjectOrder {
  readonly #link: Link;
  readonly #subject: string;
  #position: PagePosition;
  /** The remaining sessions of a subject that has few. */
  #few: Session[] | undefined;

  constructor(link: Link, subject: string, start: PagePosition) {
    this.#link = link;
    this.#subject = subject;
    this.#position = start;
  }

  /** Returns the next candidates. If there are fewer than `count`, they are the last ones. */
  async take(count: number): Promise<Candidate[]> {
    const taken: Candidate[] = [];
    while (this.#few === undefined && taken.length < count) {
      const wanted = count - taken.length;
      const [form, ...found] = buffers(await this.#read(wanted));
      if (text(form) === "again") continue;
      if (text(form) === "few") {
        this.#few = afterPosition(listed(found), this.#position);
        break;
      }
      if (found.length === 0) return taken;
      for (let at = 0; at < found.length; at += 2) taken.push(candidateOf(found[at], found[at + 1]));
      this.#position = taken.at(-1)?.position ?? this.#position;
    }
    const rest = this.#few?.splice(0, count - taken.length) ?? [];
    return [...taken, ...rest.map((session) => ({ position: session, session }))];
  }

  #read(count: number): Promise<unknown> {
    const args = [this.#subject, Buffer.from(entryOf(this.#position), "latin1"), count];
    return this.#link.run("list", [tagOfSubject(this.#subject)], args);
  }
}

function candidateOf(entry: Buffer | undefined, record: Buffer | undefined): Candidate {
  const position = positionOf(text(entry));
  return { position, session: record?.length ? decodeSession(position.sid, record, 0) : undefined };
}
