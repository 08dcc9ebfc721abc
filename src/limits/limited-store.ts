import { type SessionStore, StoreBusy, StoreUnavailable } from "../session/ports.ts";
import type { Admission } from "./admission.ts";

/** Whether a verb may be refused under overload: ordinary ones early, endings late, the rest never. */
const VERBS: Readonly<Record<keyof SessionStore, "ordinary" | "ending" | "free">> = {
  create: "ordinary",
  rotate: "ordinary",
  find: "ordinary",
  list: "ordinary",
  listAll: "ordinary",
  count: "free",
  end: "ending",
  endOwned: "ending",
  endAll: "ending",
  revokeAll: "ending",
  elevate: "ordinary",
  recordEvents: "ordinary",
  events: "ordinary",
  dueRecords: "free",
  claimRecord: "free",
  registerKey: "ordinary",
  unbind: "ordinary",
  now: "free",
  revocations: "free",
  onRevocation: "free",
  ping: "free",
  close: "free",
};

/** Built once: its stack would say nothing. */
const BUSY = new StoreBusy("too many commands wait for the store");

type AnyVerb = (...given: never[]) => Promise<unknown>;

export type LimitEvents = {
  readonly onRefused: () => void;
  /** A command has ended. @param replied whether the store responded, be it with a failure */
  readonly onReply?: ((verb: string, replied: boolean, seconds: number) => void) | undefined;
};

/** The store, with a bounded number of commands waiting for it. A refused command never reaches it. */
export function limitStore(
  store: SessionStore,
  admission: Admission,
  { onRefused, onReply = () => {} }: LimitEvents,
): SessionStore {
  const limited = (name: string, verb: AnyVerb, isBusy: () => boolean, replied: "replied" | "slow") => {
    return (...given: never[]): Promise<unknown> => {
      if (isBusy()) {
        onRefused();
        return Promise.reject(BUSY);
      }
      const begun = admission.begin();
      const startMs = performance.now();
      const result = verb.apply(store, given);
      // Beside the caller, which gets the verb's own promise: another one in between costs a refresh half a microsecond.
      result.then(
        () => {
          admission.finish(begun, replied);
          onReply(name, true, (performance.now() - startMs) / 1000);
        },
        (error: unknown) => {
          const isLost = error instanceof StoreUnavailable;
          admission.finish(begun, isLost ? "lost" : replied);
          onReply(name, !isLost, (performance.now() - startMs) / 1000);
        },
      );
      return result;
    };
  };
  const isBusy = () => admission.storeIsBusy();
  const isFull = () => admission.storeIsFull();
  const verbs = Object.entries(VERBS).map(([name, kind]) => {
    const verb = store[name as keyof SessionStore] as AnyVerb;
    if (kind === "free") return [name, verb.bind(store)];
    return [name, kind === "ending" ? limited(name, verb, isFull, "slow") : limited(name, verb, isBusy, "replied")];
  });
  return Object.fromEntries(verbs) as SessionStore;
}
