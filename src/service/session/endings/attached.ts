/**
 * Ends the sessions that end with the sessions of their actors. The step that ends an actor's session also leaves a note in the store.
 * Every instance looks for such notes when it hears of one, and at intervals, so that the death of an instance only delays an ending.
 */
import { UNKNOWN_REQUESTER } from "../audit.ts";
import type { SessionId } from "../model.ts";
import type { AttachOutcome, ExpiredSession } from "../store-outcomes.ts";
import { type LookDeps, lookRegularly, type RegularLook } from "./regular-look.ts";

/** Sessions that end with the sessions of their actors: a part of the store (ports.ts). */
export interface AttachedSessions {
  /** Makes a session end soon after the live session `actor` of its actor has ended. @param lifeMs how long the session lives at most */
  attach(sid: SessionId, actor: SessionId, lifeMs: number): Promise<AttachOutcome>;

  /**
   * Ends the sessions whose actors' sessions have ended (`actor_ended`), each once, however many instances call it. Returns those that this
   * call has ended, which the caller must record. The note that the actor's session has ended stays until they have ended, too.
   */
  endAttached(): Promise<readonly ExpiredSession[]>;

  /** Calls `wake` soon after `endAttached` may have work. Such a call is only a hint. Returns a function that stops the calls. */
  onAttachedEnd(wake: () => void): () => void;
}

/** How often notes are looked for that no instance has heard of, in ms. */
const LOOK_FOR_NOTES_MS = 10_000;

type Deps = LookDeps<Pick<AttachedSessions, "endAttached" | "onAttachedEnd">>;

export function createAttachedEndings({ store, audit, onError }: Deps): RegularLook {
  let isWanted = false;
  const work = async () => {
    await undefined; // The work begins later, because the store may call the listener before its method returns.
    do {
      isWanted = false; // The call that follows may miss notes that are left from now on.
      for (const { sid, subject, actor } of await store.endAttached()) {
        audit({ event: "session_ended", sid, subject, actor, reason: "actor_ended" }, UNKNOWN_REQUESTER);
      }
    } while (isWanted);
  };
  const regular = lookRegularly(work, LOOK_FOR_NOTES_MS, onError);
  const look = () => {
    isWanted = true;
    return regular.look();
  };
  const stop = store.onAttachedEnd(() => void look());
  return {
    look,
    close() {
      stop();
      return regular.close();
    },
  };
}
