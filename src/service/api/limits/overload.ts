import { type Turns, turns as turnsOfProcess } from "../../../platform/clock/turns.ts";
import { type SessionStore, StoreBusy, StoreUnavailable } from "../../session/ports.ts";
import { Admission, type AdmissionOptions } from "./admission.ts";

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
  readonly onReply?: LimitEvents["onReply"];
};

export function createOverloadControl(
  { reuseIntervalMs, onRefused, onReply, ...options }: OverloadOptions,
  turns: Turns = turnsOfProcess,
): OverloadControl {
  const admission = new Admission({ ...options, onRefused });
  const stop = turns.follow(() => admission.turn());
  const tolerances = stallTolerances(reuseIntervalMs);
  return {
    accept: admission.accept.bind(admission),
    limit: (store) =>
      limitStore(store, admission, { tolerances, turns }, { onRefused: () => onRefused("store"), onReply }),
    waiting: () => admission.waiting,
    close: stop,
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
  sessionsOf: "ending",
  isNoted: "ending",
  note: "ending",
  revokeAll: "ending",
  expire: "free",
  forget: "ending",
  attach: "ordinary",
  endAttached: "free",
  onAttachedEnd: "local",
  elevate: "ordinary",
  update: "ending", // It may take a right away, as the end of a session does.
  recordEvents: "ordinary",
  events: "ordinary",
  eventSessions: "ordinary",
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
const ROTATING_METHODS: ReadonlySet<string> = new Set<keyof SessionStore>(["rotate", "registerKey"]);

type AnyVerb = (...given: never[]) => Promise<unknown>;

type LimitEvents = {
  readonly onRefused: () => void;
  /** Called when a command has ended. @param outcome whether the store responded, even with a failure */
  readonly onReply?: ((verb: string, outcome: "replied" | "lost", seconds: number) => void) | undefined;
};

/** Returns a store with a bounded queue of commands. It also refuses commands of requests that may be too old. */
export function limitStore(
  store: SessionStore,
  admission: Admission,
  { tolerances, turns }: { readonly tolerances: Tolerances; readonly turns: Pick<Turns, "behindMs"> },
  { onRefused, onReply = () => {} }: LimitEvents,
): SessionStore {
  const limited = (name: string, verb: AnyVerb, limit: "storeIsBusy" | "storeIsFull", replied: "replied" | "slow") => {
    const toleranceMs = ROTATING_METHODS.has(name) ? tolerances.rotationMs : tolerances.othersMs;
    return (...given: never[]): Promise<unknown> => {
      // After a stall of the process, what is read in this turn may have been sent long ago.
      if (turns.behindMs() > toleranceMs) return Promise.reject(STALLED);
      if (admission[limit]()) {
        onRefused();
        return Promise.reject(BUSY);
      }
      const begun = admission.begin();
      const startMs = performance.now();
      const result = verb.apply(store, given);
      const onEnd = (error: unknown) => {
        const isLost = error instanceof StoreUnavailable;
        admission.finish(begun, isLost ? "lost" : replied);
        onReply(name, isLost ? "lost" : "replied", (performance.now() - startMs) / 1000);
      };
      // The caller gets the promise of the method itself, because another promise would cost a refresh half a microsecond.
      result.then(onEnd, onEnd);
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

const MIN_TOLERANCE_MS = 500;
/** The limit in ms for methods other than rotation: most callers have given up by then, and a late effect would surprise them. */
const OTHERS_TOLERANCE_MS = 10_000;

/** How long requests may have waited in this process, in ms. */
type Tolerances = {
  /** For requests that present a refresh token. */
  readonly rotationMs: number;
  readonly othersMs: number;
};

/**
 * Returns how long requests may have waited in this process, while it was stopped, busy, or suspended with its machine. After such a stall
 * it reads requests that may be older than the rules of rotation allow. They get the response for an unavailable store, and callers that
 * are still there try again.
 *
 * A refresh may wait in this process for a quarter of the reuse interval, so that its request may spend another quarter on the network. The
 * minimum is 500 ms, so the service warns at its start of a reuse interval below 2 s. If the interval is 0,
 * a late refresh breaks no promise, so none is refused.
 */
export function stallTolerances(reuseIntervalMs: number): Tolerances {
  const rotationMs = reuseIntervalMs === 0 ? Number.POSITIVE_INFINITY : Math.max(reuseIntervalMs / 4, MIN_TOLERANCE_MS);
  return { rotationMs, othersMs: Math.max(reuseIntervalMs / 4, OTHERS_TOLERANCE_MS) };
}
