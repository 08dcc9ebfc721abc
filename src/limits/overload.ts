/** Overload control of an instance: the parts of admission.ts, put together. */
import type { SessionStore } from "../session/ports.ts";
import { Admission, type AdmissionOptions, type OverloadCause, TICK_MS } from "./admission.ts";
import { type LimitEvents, limitStore } from "./limited-store.ts";

export type { OverloadCause } from "./admission.ts";

export type OverloadControl = {
  /** Accepts an ordinary call, or not. */
  readonly accept: () => boolean;
  /** The store, with a bounded number of commands waiting for it. */
  readonly limit: (store: SessionStore) => SessionStore;
  /** How many commands wait for the store. */
  readonly waiting: () => number;
  readonly close: () => void;
};

export type OverloadOptions = Omit<AdmissionOptions, "clock"> & {
  /** Called for each call or command that is refused. */
  readonly onRefused: (cause: OverloadCause) => void;
  /** Called when a command of the store has ended. */
  readonly onReply?: LimitEvents["onReply"];
};

export function createOverloadControl({ onRefused, onReply, ...options }: OverloadOptions): OverloadControl {
  const admission = new Admission(options);
  const timer = setInterval(() => admission.tick(), TICK_MS).unref();
  return {
    accept() {
      const cause = admission.accept();
      if (cause !== undefined) onRefused(cause);
      return cause === undefined;
    },
    limit: (store) => limitStore(store, admission, { onRefused: () => onRefused("store"), onReply }),
    waiting: () => admission.waiting,
    close: () => clearInterval(timer),
  };
}
