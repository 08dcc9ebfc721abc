/**
 * Ends sessions that have expired, so that every receiver of endings is also notified of expiries. Every instance looks for expired
 * sessions. The store ends each of them once, and writes a due record, so that the ending is recorded even if this process dies.
 */
import { type Audit, UNKNOWN_REQUESTER } from "../audit.ts";
import type { SessionStore } from "../ports.ts";

/** How often expired sessions are looked for, in ms. If an instance dies while it looks, another one can look there after 30 s. */
const LOOK_FOR_EXPIRED_MS = 10_000;
/** The pause between two calls of the store while expired sessions are left, in ms. The endings are recorded meanwhile. */
const PAUSE_MS = 50;

type Deps = {
  readonly store: Pick<SessionStore, "expire">;
  readonly audit: Audit;
  /** Called with the first failure of an outage. */
  readonly onError: (error: unknown) => void;
};

type Expiry = {
  /** Ends and records the sessions that have expired. It runs by itself; tests call it when they move the clock. */
  look(): Promise<void>;
  /** Stops after the call of the store that is under way. */
  close(): Promise<void>;
};

export function createExpiry({ store, audit, onError }: Deps): Expiry {
  let isClosed = false;
  let looking: Promise<void> | undefined;
  let isFailing = false;

  async function lookOnce(): Promise<void> {
    try {
      for (let isDone = false; !isDone && !isClosed; ) {
        const step = await store.expire();
        for (const { sid, subject, actor } of step.ended) {
          audit({ event: "session_ended", sid, subject, actor, reason: "expired" }, UNKNOWN_REQUESTER);
        }
        isDone = step.isDone;
        if (!isDone) await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
      }
      isFailing = false;
    } catch (error) {
      if (!isFailing) onError(error);
      isFailing = true;
    }
  }

  const look = () => {
    looking ??= lookOnce().finally(() => {
      looking = undefined;
    });
    return looking;
  };
  const timer = setInterval(() => void look(), LOOK_FOR_EXPIRED_MS).unref();
  return {
    look,
    async close() {
      isClosed = true;
      clearInterval(timer);
      await looking;
    },
  };
}
