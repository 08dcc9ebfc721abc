/** Reads the sessions of a subject in order of creation, newest first. */
import type { Session } from "../../session/model.ts";
import { afterPosition } from "../page.ts";
import type { Candidate, TakeCandidates } from "../search.ts";
import { entryOf, positionOf } from "./creation-order.ts";
import type { Link } from "./link.ts";
import { tagOfSubject } from "./partitions.ts";
import { decodeSession } from "./record.ts";
import { buffers, listed, text } from "./replies.ts";

export function takeOfSubject(link: Pick<Link, "run">, subject: string): TakeCandidates {
  /** If the subject has few sessions, those that have not been returned yet. */
  let few: Session[] | undefined;
  return async (after, count) => {
    const taken: Candidate[] = [];
    while (few === undefined && taken.length < count) {
      const position = taken.at(-1)?.position ?? after;
      const args = [subject, Buffer.from(entryOf(position), "latin1"), count - taken.length];
      const [form, ...found] = buffers(await link.run("list", [tagOfSubject(subject)], args));
      if (text(form) === "again") continue;
      if (text(form) === "few") few = afterPosition(listed(found), position);
      else if (found.length === 0) return taken;
      else for (let at = 0; at < found.length; at += 2) taken.push(candidateOf(found[at], found[at + 1]));
    }
    const rest = few?.splice(0, count - taken.length) ?? [];
    return [...taken, ...rest.map((session) => ({ position: session, session }))];
  };
}

function candidateOf(entry: Buffer | undefined, record: Buffer | undefined): Candidate {
  const position = positionOf(text(entry));
  return { position, session: record?.length ? decodeSession(position.sid, record, 0) : undefined };
}
