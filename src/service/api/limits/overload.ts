import { type Turns, turns as turnsOfProcess } from "../../../platform/clock/turns.ts";
import { type SessionStore, StoreBusy, StoreUnavailable } from "../../session/ports.ts";
import { Admission, type AdmissionOptions, type OverloadCause } from "./admission.ts";
import { createStallGuard, type StallGuard } from "./stall.ts";

export type OverloadControl = {
  /** Returns whether an ordinary call is accepted. */
  readonly accept: () => boolean;
  /** Returns the store with a bounded queue of commands. For requests that may be too old, it sends no command. */
  readonly limit: (store: SessionStore) => SessionStore;
  readonly waiting: () => number;
  readonly close: () => void;
};

type OverloadOptions = Omit<AdmissionOptions, "clock" | "processorTime"> & {
  readonly reuseIntervalMs: number;
  readonly onRefused: (cause: OverloadCause) => void;
  readonly onReply?: LimitEvents["onReply"];
};

export function createOverloadControl(
  { reuseIntervalMs, onRefused, onReply, ...options }: OverloadOptions,
  turns: Turns = turnsOfProcess,
): OverloadControl {
  const admission = new Admission(options);
  const stop = turns.follow(() => admission.turn());
  const stall = createStallGuard(reuseIntervalMs, turns);
  return {
    accept() {
      const cause = admission.accept();
      if (cause !== undefined) onRefused(cause);
      return cause === undefined;
    },
    limit: (store) => limitStore(store, admission, stall, { onRefused: () => onRefused("store"), onReply }),
    waiting: () => admission.waiting,
    close() {
      stop();
      stall.close();
    },
  };
}

/**
 * Which methods may be refused under overload: `ordinary` ones early, `ending` ones only when the queue is full, the others never. `free`
 * methods run in the background; their replies show whether the store is late. `local` methods do not call the store.
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

/** The error is created once, because its stack would be of no use. */
const BUSY = new StoreBusy("too many commands wait for the store");
const STALLED = new StoreUnavailable("the process was stalled: the request may be too old");

/** The methods that take a refresh token. The rules of rotation only hold for requests that were sent recently. */
const ROTATIONS: ReadonlySet<string> = new Set<keyof SessionStore>(["rotate", "registerKey"]);

type AnyVerb = (...given: never[]) => Promise<unknown>;

type LimitEvents = {
  readonly onRefused: () => void;
  /** Called when a command has ended. @param replied whether the store responded, even with a failure */
  readonly onReply?: ((verb: string, replied: boolean, seconds: number) => void) | undefined;
};

/** Returns a store with a bounded queue of commands. It also refuses commands of requests that may be too old. */
export function limitStore(
  store: SessionStore,
  admission: Admission,
  stall: Pick<StallGuard, "mayBeTooOld">,
  { onRefused, onReply = () => {} }: LimitEvents,
): SessionStore {
  const limited = (name: string, verb: AnyVerb, limit: "storeIsBusy" | "storeIsFull", replied: "replied" | "slow") => {
    const tolerance = ROTATIONS.has(name) ? "rotationMs" : "othersMs";
    return (...given: never[]): Promise<unknown> => {
      if (stall.mayBeTooOld(tolerance)) return Promise.reject(STALLED);
      if (admission[limit]()) {
        onRefused();
        return Promise.reject(BUSY);
      }
      const begun = admission.begin();
      const startMs = performance.now();
      const result = verb.apply(store, given);
      const finish = (outcome: "replied" | "slow" | "lost") => {
        admission.finish(begun, outcome);
        onReply(name, outcome !== "lost", (performance.now() - startMs) / 1000);
      };
      // The caller gets the promise of the method itself, because another promise would cost a refresh half a microsecond.
      result.then(
        () => finish(replied),
        (error: unknown) => finish(error instanceof StoreUnavailable ? "lost" : replied),
      );
      return result;
    };
  };
  // Some methods are called even if no request arrives, so their replies show that the store has recovered.
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
  const verbs = Object.entries(VERBS).map(([name, kind]) => {
    const verb = store[name as keyof SessionStore] as AnyVerb;
    if (kind === "local") return [name, verb.bind(store)];
    if (kind === "free") return [name, heard(verb)];
    const isEnding = kind === "ending";
    return [
      name,
      isEnding ? limited(name, verb, "storeIsFull", "slow") : limited(name, verb, "storeIsBusy", "replied"),
    ];
  });
  return Object.fromEntries(verbs) as SessionStore;
}
