/**
 * Sessions that end with the sessions of their actors. The two are in different partitions, so no step ends both. The step that ends an
 * actor's session (lua/lib/hand_over.lua) leaves a note in its partition, and publishes that it did. Every instance that hears of it ends
 * the session, once, and removes the note.
 */
import { MAX_ATTACHED } from "../../session/model.ts";
import type { ExpiredSession, SessionStore } from "../../session/ports.ts";
import { buffers, decodeFound, text } from "./encoding/replies.ts";
import { KEY } from "./keys.ts";
import { slicesOf, tagOfSession } from "./partitions.ts";
import type { Acknowledge } from "./replicas.ts";
import type { ScriptRunner } from "./script-runner.ts";

type Note = { readonly tag: string; readonly sid: ExpiredSession["sid"] };

export function createAttached(
  runner: Pick<ScriptRunner, "run" | "clustered">,
  acknowledge: Acknowledge,
  endOwned: SessionStore["endOwned"],
): Pick<SessionStore, "attach" | "endAttached"> {
  const readNotes = async (tags: readonly string[]): Promise<Note[]> => {
    const found = buffers(await runner.run("attached", tags, [])).map(text);
    const notes: Note[] = [];
    for (const tag of tags) {
      const sids = found.splice(0, 1 + Number(found[0])).slice(1);
      for (const sid of sids) notes.push({ tag, sid: sid as Note["sid"] });
    }
    return notes;
  };

  const end = async ({ tag, sid }: Note): Promise<ExpiredSession | undefined> => {
    const found = decodeFound(sid, await runner.run("find", [tagOfSession(sid)], [sid]));
    const outcome = await endOwned(sid, sid, "actor_ended", {}); // Only if it is live: `end` would also mark and log it otherwise.
    await runner.run("detach", [tag], [sid]);
    if (!outcome.ok) return undefined;
    return { sid, subject: found.ok ? found.session.subject : undefined, actor: outcome.actor };
  };

  return {
    async attach(sid, actor, lifeMs) {
      const tag = tagOfSession(actor);
      const outcome = text(await runner.run("attach", [tag], [actor, sid, lifeMs, MAX_ATTACHED]));
      await acknowledge(tag, outcome === "attached" ? [KEY.attached] : []);
      return outcome === "attached" ? { ok: true } : { ok: false, reason: outcome === "full" ? "full" : "ended" };
    },

    /** @throws StoreUnavailable if a partition fails and nothing has ended. The notes stay until a later call. */
    async endAttached() {
      const slots = await Promise.allSettled(slicesOf(runner).map(readNotes));
      const notes = slots.flatMap((slot) => (slot.status === "fulfilled" ? slot.value : []));
      const results = await Promise.allSettled(notes.map(end));
      const ended = results.flatMap((one) => (one.status === "fulfilled" && one.value ? [one.value] : []));
      const failure = [...slots, ...results].find(({ status }) => status === "rejected");
      if (failure?.status === "rejected" && ended.length === 0) throw failure.reason;
      return ended;
    },
  };
}
