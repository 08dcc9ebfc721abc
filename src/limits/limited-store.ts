import { type SessionStore, StoreBusy, StoreUnavailable } from "../session/ports.ts";
import type { Admission } from "./admission.ts";
import type { StallGuard } from "./stall.ts";

/**
 * Whether a verb may be refused under overload: ordinary ones early, endings late, the rest never. Those that are free are no
 * work of callers; some of them ask the store, and its replies count.
 */
const VERBS: Readonly<Record<keyof SessionStore, "ordinary" | "ending" | "free" | "local">> = {
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
  expire: "free",
  elevate: "ordinary",
  recordEvents: "ordinary",
  events: "ordinary",
  dueRecords: "free",
  claimRecord: "free",
  registerKey: "ordinary",
  unbind: "ordinary",
  now: "local",
  shiftMs: "local",
  revocations: "free",
  onRevocation: "local",
  ping: "free",
  close: "local",
};

/** Built once: its stack would say nothing. */
const BUSY = new StoreBusy("too many commands wait for the store");
const STALLED = new StoreUnavailable("the process was stalled: the request may be too old");

/** Those that present a refresh token: the rules of rotation count on their being young. */
const ROTATIONS: ReadonlySet<string> = new Set<keyof SessionStore>(["rotate", "registerKey"]);

type AnyVerb = (...given: never[]) => Promise<unknown>;

export type LimitEvents = {
  readonly onRefused: () => void;
  /** A command has ended. @param replied whether the store responded, be it with a failure */
  readonly onReply?: ((verb: string, replied: boolean, seconds: number) => void) | undefined;
};

/**
 * The store, with a bounded number of commands waiting for it, and none of a request that may be too old. A refused command never
 * reaches it.
 */
export function limitStore(
  store: SessionStore,
  admission: Admission,
  stall: Pick<StallGuard, "mayBeTooOld">,
  { onRefused, onReply = () => {} }: LimitEvents,
): SessionStore {
  const limited = (name: string, verb: AnyVerb, isBusy: () => boolean, replied: "replied" | "slow") => {
    const tolerance = ROTATIONS.has(name) ? "rotationMs" : "othersMs";
    return (...given: never[]): Promise<unknown> => {
      if (stall.mayBeTooOld(tolerance)) return Promise.reject(STALLED);
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
  // These reply after an outage too, while no call comes.
  const heard = (verb: AnyVerb) => {
    return (...given: never[]): Promise<unknown> => {
      const begun = admission.now;
      const result = verb.apply(store, given);
      result.then(
        () => admission.hear(begun),
        () => {},
      );
      return result;
    };
  };
  const isBusy = () => admission.storeIsBusy();
  const isFull = () => admission.storeIsFull();
  const verbs = Object.entries(VERBS).map(([name, kind]) => {
    const verb = store[name as keyof SessionStore] as AnyVerb;
    if (kind === "local") return [name, verb.bind(store)];
    if (kind === "free") return [name, heard(verb)];
    return [name, kind === "ending" ? limited(name, verb, isFull, "slow") : limited(name, verb, isBusy, "replied")];
  });
  return Object.fromEntries(verbs) as SessionStore;
}
