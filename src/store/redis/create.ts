/**
 * Creates a session. This mostly takes one script, and several for a subject with many sessions, because one script may only do a limited
 * amount of work.
 */
import type { Link } from "./link.ts";
import { buffers, text } from "./replies.ts";

type Arguments = readonly (string | number | Buffer)[];

/** A time, in ms, that is later than the expiry of every session. */
const NEVER = 2 ** 48;

/**
 * Runs lua/create.lua until it has created the session. Returns its last reply, with the ids of all sessions that were ended.
 *
 * @param args the sid, the subject, …
 * @throws StoreUnavailable
 */
export async function createInSteps(link: Pick<Link, "run">, tag: string, args: Arguments): Promise<readonly Buffer[]> {
  const [, subject = ""] = args;
  const earlier: Buffer[] = [];
  for (;;) {
    const [record = Buffer.alloc(0), replaced = record, ...ended] = buffers(await link.run("create", [tag], args));
    switch (text(record)) {
      case "sweep":
        await sweep(link, tag, subject);
        break;
      case "again":
        earlier.push(...ended);
        break;
      default:
        return [record, replaced, ...earlier, ...ended];
    }
  }
}

/** Runs lua/sweep.lua until it has found expired sessions or has reached the end of the subject's sessions. */
async function sweep(link: Pick<Link, "run">, tag: string, subject: Arguments[number]): Promise<void> {
  let after: Arguments[number] = "";
  let least: Arguments[number] = NEVER;
  do {
    const [next, soonest] = buffers(await link.run("sweep", [tag], [subject, after, least]));
    [after, least] = [next ?? "", soonest ?? NEVER];
  } while (after.length > 0);
}
