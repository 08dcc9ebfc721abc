/** The creation of a session. One script mostly; more of them for a subject with many sessions, of which one may only do so much. */
import type { Link } from "./link.ts";
import { buffers, text } from "./replies.ts";

type Arguments = readonly (string | number | Buffer)[];

/** Later than any session expires, ms. */
const NEVER = 2 ** 48;

/**
 * As lua/create.lua returns it when it has created the session, with all that were ended.
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

/** Until the end of the subject's sessions, or until some were found that have expired. */
async function sweep(link: Pick<Link, "run">, tag: string, subject: Arguments[number]): Promise<void> {
  let after: Arguments[number] = "";
  let least: Arguments[number] = NEVER;
  do {
    const [next, soonest] = buffers(await link.run("sweep", [tag], [subject, after, least]));
    [after, least] = [next ?? "", soonest ?? NEVER];
  } while (after.length > 0);
}
