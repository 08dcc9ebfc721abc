import { dueKeyOf } from "../../session/events/events.ts";
import type { SessionStore } from "../../session/ports.ts";
import { storeMs } from "../../session/time.ts";
import { noteOf } from "../event-text.ts";
import { encodeHolder } from "./encoding/device-record.ts";
import { decodeFound, endOutcome, endOwnedOutcome, isEnding, text } from "./encoding/replies.ts";
import type { SubjectEnds } from "./end-all.ts";
import { KEY } from "./keys.ts";
import { FIRST_TAG, slicesOf, TAGS, tagOfSession } from "./partitions.ts";
import type { Acknowledge } from "./replicas.ts";
import type { ScriptRunner } from "./script-runner.ts";

export function createEndings(
  runner: Pick<ScriptRunner, "run" | "clustered">,
  acknowledge: Acknowledge,
  markerLifeMs: number,
  ends: Pick<SubjectEnds, "finish">,
): Pick<SessionStore, "end" | "endOwned" | "revokeAll"> {
  return {
    async end(sid, reason, origin, holder) {
      const tag = tagOfSession(sid);
      const [note, subject] = [noteOf(origin), origin?.subject ?? ""];
      const args = [sid, reason, markerLifeMs, note, subject, holder ? encodeHolder(holder) : ""] as const;
      let reply = await runner.run("end", [tag], args);
      while (isEnding(reply)) {
        await ends.finish(tag); // Verifiers must learn that the session has ended before the caller gets the response.
        reply = await runner.run("end", [tag], args);
      }
      const outcome = endOutcome(reply);
      await acknowledge(tag, [KEY.marker + sid]);
      return outcome;
    },

    async endOwned(caller, target, reason, origin) {
      const tag = tagOfSession(caller);
      if (tag !== tagOfSession(target)) {
        // A session in another partition has another subject, so the caller may not end it. Only the reason for the refusal is determined.
        const { ok } = decodeFound(caller, await runner.run("find", [tag], [caller]));
        return { ok: false, reason: ok ? "not_found" : "caller_ended" };
      }
      const args = [caller, target, reason, markerLifeMs, noteOf(origin)] as const;
      const outcome = endOwnedOutcome(await runner.run("end_owned", [tag], args));
      await acknowledge(tag, outcome.ok ? [KEY.marker + target] : []);
      return outcome;
    },

    /**
     * Ends the sessions that were created up to a time, which is the same in all partitions. Without `createdBefore`, it is not earlier
     * than the creation of any existing session. Clocks of nodes differ: a session that is created in a partition afterwards is given a
     * later time of creation, whatever its node's clock returns (create.lua).
     */
    async revokeAll(createdBefore, origin) {
      const slots = slicesOf(runner);
      const latest = await Promise.all(
        slots.map(async (tags) => Number(text(await runner.run("latest_creation", tags, [])))),
      );
      const before = createdBefore ?? Number.POSITIVE_INFINITY;
      const revokedUntil = storeMs(Math.max(0, Math.min(Math.max(...latest), before - 1)));
      const key = dueKeyOf({ type: "all_ended", revokedUntil }) ?? "";
      const end = (tag: string, note: string) =>
        runner.run("revoke_all", [tag], [revokedUntil, markerLifeMs, note, key]);
      // The event of the logout, which is still to be recorded, is stored in the first partition, whose sessions end first.
      await end(FIRST_TAG, noteOf(origin));
      await Promise.all(
        TAGS.map(async (tag) => {
          if (tag !== FIRST_TAG) await end(tag, "");
          await acknowledge(tag, [KEY.all_ended]);
        }),
      );
      return revokedUntil;
    },
  };
}
