/**
 * Expiry is an ending: whoever has to know that a session ended learns that it expired. Every instance looks for such sessions; the
 * store has each of them end once, and leaves the due record with which it is recorded even if this process dies.
 */
import { type Audit, UNKNOWN_REQUESTER } from "./audit.ts";
import type { SessionStore } from "./ports.ts";

/**
 * How often expired sessions are looked for, in ms. With the time for which an instance holds a part of the store (30 s), an expiry is
 * found within a minute, even if that instance has died.
 */
const LOOK_FOR_EXPIRED_MS = 10_000;
/** The pause after a step that has left something to be done, in ms: what it has ended is recorded meanwhile. */
const PAUSE_MS = 50;

type Deps = {
  readonly store: Pick<SessionStore, "expire">;
  readonly audit: Audit;
  /** Called with the first failure of an outage. */
  readonly onError: (error: unknown) => void;
};

export type Expiry = {
  /** Ends and records what has expired, as far as the store is available. It runs by itself; tests call it when they move the clock. */
  look(): Promise<void>;
  /** Stops after the step that is under way. */
  close(): Promise<void>;
};

export function createExpiry({ store, audit, onError }: Deps): Expiry {
  const closing = new AbortController();
  let looking: Promise<void> | undefined;
  let isFailing = false;

  async function lookOnce(): Promise<void> {
    try {
      for (let isDone = false; !isDone && !closing.signal.aborted; ) {
        const step = await store.expire();
        for (const { sid, subject } of step.ended) {
          audit({ event: "session_ended", sid, subject, reason: "expired" }, UNKNOWN_REQUESTER);
        }
        isDone = step.isDone;
        if (!isDone) await pause(closing.signal);
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
      closing.abort();
      clearInterval(timer);
      await looking;
    },
  };
}

function pause(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, PAUSE_MS);
    signal.addEventListener("abort", end);
  });
}
