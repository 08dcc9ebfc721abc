/** The operations that end one session. */
import type { SessionStore } from "../../session/ports.ts";
import { noteOf } from "../due-text.ts";
import type { SubjectEnds } from "./end-all.ts";
import type { Link } from "./link.ts";
import { tagOfSession } from "./partitions.ts";
import { holderArguments } from "./record.ts";
import type { Acknowledge } from "./replicas.ts";
import { decodeFound, endOutcome, endOwnedOutcome, isEnding } from "./replies.ts";

export function createEndings(
  link: Pick<Link, "run">,
  acknowledge: Acknowledge,
  markerLifeMs: number,
  ends: Pick<SubjectEnds, "finish">,
): Pick<SessionStore, "end" | "endOwned"> {
  return {
    async end(sid, reason, origin, holder) {
      const tag = tagOfSession(sid);
      const args = [sid, reason, markerLifeMs, noteOf(origin), origin?.subject ?? "", ...holderArguments(holder)];
      let reply = await link.run("end", [tag], args);
      while (isEnding(reply)) {
        await ends.finish(tag); // Verifiers must learn that the session has ended before the caller gets the response.
        reply = await link.run("end", [tag], args);
      }
      const outcome = endOutcome(reply);
      await acknowledge(tag, [`m${sid}`]);
      return outcome;
    },

    async endOwned(actor, target, reason, origin) {
      const tag = tagOfSession(actor);
      if (tag !== tagOfSession(target)) {
        // A session in another partition has another subject.
        const { ok } = decodeFound(actor, await link.run("find", [tag], [actor]));
        return { ok: false, reason: ok ? "not_found" : "actor_ended" };
      }
      const args = [actor, target, reason, markerLifeMs, noteOf(origin)];
      const outcome = endOwnedOutcome(await link.run("end_owned", [tag], args));
      await acknowledge(tag, outcome.ok ? [`m${target}`] : []);
      return outcome;
    },
  };
}
