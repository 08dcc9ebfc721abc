/**
 * Ends sessions that have expired, so that every receiver of endings is also notified of expiries. Every instance looks for expired
 * sessions. The store ends each of them once, and writes a due record, so that the ending is recorded even if this process dies.
 */
import { UNKNOWN_REQUESTER } from "../audit.ts";
import type { SessionStore } from "../ports.ts";
import { type LookDeps, lookRegularly, type RegularLook } from "./regular-look.ts";

/** How often expired sessions are looked for, in ms. If an instance dies while it looks, another one can look there after 30 s. */
const LOOK_FOR_EXPIRED_MS = 10_000;
/** The pause between two calls of the store while expired sessions are left, in ms. The endings are recorded meanwhile. */
const PAUSE_MS = 50;

export function createExpiry({ store, audit, onError }: LookDeps<Pick<SessionStore, "expire">>): RegularLook {
  let isClosed = false;
  const work = async () => {
    for (let isDone = false; !isDone && !isClosed; ) {
      const step = await store.expire();
      for (const { sid, subject, actor } of step.ended) {
        audit({ event: "session_ended", sid, subject, actor, reason: "expired" }, UNKNOWN_REQUESTER);
      }
      isDone = step.isDone;
      if (!isDone) await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
  };
  const { look, close } = lookRegularly(work, LOOK_FOR_EXPIRED_MS, onError);
  return {
    look,
    close() {
      isClosed = true;
      return close();
    },
  };
}
