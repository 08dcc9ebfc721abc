import type { Session } from "../../session/model.ts";
import type { SessionStore } from "../../session/ports.ts";
import { afterPosition, type Candidate, search, type TakeCandidates } from "../search.ts";
import { entryOf, positionOfEntry, takeInCreationOrder } from "./creation-order.ts";
import { decodeSession } from "./encoding/record.ts";
import { buffers, listed, pairsOf, text } from "./encoding/replies.ts";
import { slicesOf, tagOfSubject } from "./partitions.ts";
import type { ScriptRunner } from "./script-runner.ts";

export function createLists(
  runner: Pick<ScriptRunner, "run" | "clustered">,
): Pick<SessionStore, "list" | "listAll" | "count"> {
  return {
    list: (subject, ...page) => search(takeOfSubject(runner, subject), ...page),
    listAll: (...page) => search(takeInCreationOrder(runner), ...page),
    count: () => countSessions(runner),
  };
}

/** Reads the sessions of a subject in order of creation, newest first. */
function takeOfSubject(runner: Pick<ScriptRunner, "run">, subject: string): TakeCandidates {
  /** If the subject has few sessions, those that have not been returned yet. */
  let few: Session[] | undefined;
  return async (after, count) => {
    const taken: Candidate[] = [];
    while (few === undefined && taken.length < count) {
      const position = taken.at(-1)?.position ?? after;
      const args = [subject, Buffer.from(entryOf(position), "latin1"), count - taken.length] as const;
      const [form, ...found] = buffers(await runner.run("list", [tagOfSubject(subject)], args));
      if (text(form) === "again") continue;
      if (text(form) === "few") few = afterPosition(listed(found), position);
      else if (found.length === 0) return taken;
      else taken.push(...pairsOf(found).map(candidateOf));
    }
    const rest = few?.splice(0, count - taken.length) ?? [];
    return [...taken, ...rest.map((session) => ({ position: session, session }))];
  };
}

function candidateOf([entry, record]: readonly [Buffer, Buffer]): Candidate {
  const position = positionOfEntry(text(entry));
  return { position, session: record.length > 0 ? decodeSession(position.sid, record, 0) : undefined };
}

/**
 * To estimate the number of sessions, so many chunks of up to 32 sessions are read in each partition. If there are no more than some
 * 20,000 sessions in all, the number is exact.
 */
const CHUNKS_LOOKED_AT = 3;
/** How many partitions one script reads, if they are on one node: some 0.2 ms. */
const PARTITIONS_PER_READ = 4;

/** Estimates the number of sessions. The scripts run one after the other, so that other commands run between them. */
async function countSessions(runner: Pick<ScriptRunner, "run" | "clustered">): Promise<number> {
  let sum = 0;
  for (const tags of slicesOf(runner, PARTITIONS_PER_READ)) {
    sum += Number(text(await runner.run("count", tags, [CHUNKS_LOOKED_AT])));
  }
  return Math.round(sum);
}
