import { dueKeyOf, type Origin } from "../../session/events.ts";
import { type StoreMs, storeMs } from "../../session/time.ts";
import { noteOf } from "../due-text.ts";
import type { Link } from "./link.ts";
import { FIRST_TAG, slicesOf, TAGS } from "./partitions.ts";
import type { Acknowledge } from "./replicas.ts";
import { text } from "./replies.ts";

/**
 * Ends all sessions that were created before a time, or all that exist now. All partitions use the same time, which is not earlier than
 * the creation of any existing session. Clocks of nodes differ: a session that is created in a partition afterwards is given a later time
 * of creation, whatever its node's clock returns (create.lua).
 *
 * @returns the time of creation up to which the sessions have ended
 */
export async function revokeAll(
  link: Pick<Link, "run">,
  acknowledge: Acknowledge,
  clustered: boolean,
  markerLifeMs: number,
  createdBefore: StoreMs | undefined,
  origin: Origin | undefined,
): Promise<StoreMs> {
  const slots = slicesOf(TAGS, clustered ? 1 : TAGS.length);
  const latest = await Promise.all(slots.map(async (tags) => Number(text(await link.run("horizon", tags, [])))));
  const before = createdBefore ?? Number.POSITIVE_INFINITY;
  const revokedUntil = storeMs(Math.max(0, Math.min(Math.max(...latest), before - 1)));
  const key = dueKeyOf({ type: "all_ended", revokedUntil }) ?? "";
  const end = (tag: string, note: string) => link.run("revoke_all", [tag], [revokedUntil, markerLifeMs, note, key]);
  // The due record is in the first partition, and is written with the first sessions that end.
  await end(FIRST_TAG, noteOf(origin));
  await Promise.all(
    TAGS.map(async (tag) => {
      if (tag !== FIRST_TAG) await end(tag, "");
      await acknowledge(tag, ["e"]);
    }),
  );
  return revokedUntil;
}
