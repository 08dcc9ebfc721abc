/** What signals and subscriptions have of a subject, for ForgetSubject and ExportSubject. */
import { setTimeout as pause } from "node:timers/promises";
import type { Clock } from "../session/ports.ts";
import type { SignalLog, SignalPage, SubscriptionStore } from "./ports.ts";

/** How long receivers have to accept a subject's signals before it is forgotten, in ms: twice the time after which cursors are stored. */
const DELIVERY_MS = 10_000;
const FIRST_PAUSE_MS = 50;
const LAST_PAUSE_MS = 1_000;
const PAGE = 500;

type Deps = {
  readonly log: Pick<SignalLog, "ofSubject">;
  readonly subscriptions: Pick<SubscriptionStore, "known">;
  /** The monotonic clock, in ms. */
  readonly clock: Clock;
};

export type SubjectSignals = ReturnType<typeof createSubjectSignals>;

export function createSubjectSignals({ log, subscriptions, clock }: Deps) {
  const isUnreadBy = async (subject: string, ids: ReadonlySet<string>): Promise<boolean> => {
    for (let after: number | undefined = 0; after !== undefined; ) {
      const page: SignalPage = await log.ofSubject(subject, after, PAGE);
      if (page.signals.some(({ unreadBy }) => unreadBy.some((id) => ids.has(id)))) return true;
      after = page.next;
    }
    return false;
  };
  return {
    page: (subject: string, after: number) => log.ofSubject(subject, after, PAGE),

    /** Resolves when all active subscriptions have read the signals of a subject, or after DELIVERY_MS. */
    async delivered(subject: string): Promise<void> {
      const known = await subscriptions.known();
      const active = new Set(known.filter(({ state }) => state === "active").map(({ id }) => id));
      const until = clock() + DELIVERY_MS;
      let pauseMs = FIRST_PAUSE_MS;
      while (active.size > 0 && clock() < until && (await isUnreadBy(subject, active))) {
        await pause(pauseMs);
        pauseMs = Math.min(2 * pauseMs, LAST_PAUSE_MS);
      }
    },

    async named(subject: string): Promise<readonly string[]> {
      const named = (await subscriptions.known()).filter(
        ({ filter }) => filter.subject === subject || filter.exceptSubjects?.includes(subject),
      );
      return named.map(({ id }) => id);
    },
  };
}
