import { type SessionStore, StoreBusy, StoreUnavailable } from "../session/ports.ts";
import type { Admission } from "./admission.ts";
import type { StallGuard } from "./stall.ts";

/**
 * Says which verbs may be refused under overload: ordinary ones early, endings late, free ones never. Free verbs are not called for
 * callers. Some of them ask the store, and its replies show whether it is late.
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

/** The error is built once, since its stack would show nothing of use. */
const BUSY = new StoreBusy("too many commands wait for the store");
const STALLED = new StoreUnavailable("the process was stalled: the request may be too old");

/** These verbs present a refresh token. The rules of rotation assume that such a request is young. */
const ROTATIONS: ReadonlySet<string> = new Set<keyof SessionStore>(["rotate", "registerKey"]);

type AnyVerb = (...given: never[]) => Promise<unknown>;

export type LimitEvents = {
  readonly onRefused: () => void;
  /** A command has ended. @param replied whether the store responded, be it with a failure */
  readonly onReply?: ((verb: string, replied: boolean, seconds: number) => void) | undefined;
};

/**
 * Returns a store for which a bounded number of commands waits, and none of a request that may be too old. A refused command never
 * reaches the store.
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
      // The caller gets the verb's own promise, since another promise in between would cost a refresh half a microsecond.
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
  // These verbs are called after an outage even while no request arrives.
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
