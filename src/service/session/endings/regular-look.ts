import type { Audit } from "../audit.ts";

export type LookDeps<Store> = {
  readonly store: Store;
  readonly audit: Audit;
  /** Called with the first failure of an outage. */
  readonly onError: (error: unknown) => void;
};

export type RegularLook = {
  /** Ends and records the sessions that have to end. Concurrent callers share one look. It runs by itself; tests call it. */
  look(): Promise<void>;
  /** Stops after the call of the store that is under way. */
  close(): Promise<void>;
};

/** Runs `work` at intervals and when it is called, but never twice at the same time. */
export function lookRegularly(
  work: () => Promise<void>,
  everyMs: number,
  onError: LookDeps<never>["onError"],
): RegularLook {
  let looking: Promise<void> | undefined;
  let isFailing = false;

  async function lookOnce(): Promise<void> {
    try {
      await work();
      isFailing = false;
    } catch (error) {
      if (!isFailing) onError(error);
      isFailing = true;
    } finally {
      looking = undefined;
    }
  }

  const look = () => {
    looking ??= lookOnce();
    return looking;
  };
  const timer = setInterval(() => void look(), everyMs).unref();
  return {
    look,
    async close() {
      clearInterval(timer);
      await looking;
    },
  };
}
