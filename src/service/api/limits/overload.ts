import { turns } from "../../../platform/clock/turns.ts";
import type { SessionStore } from "../../session/ports.ts";
import { Admission, type AdmissionOptions, type OverloadCause } from "./admission.ts";
import { type LimitEvents, limitStore } from "./limited-store.ts";
import { createStallGuard } from "./stall.ts";

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

export function createOverloadControl({
  reuseIntervalMs,
  onRefused,
  onReply,
  ...options
}: OverloadOptions): OverloadControl {
  const admission = new Admission(options);
  const stop = turns.follow(() => admission.turn());
  const stall = createStallGuard(reuseIntervalMs);
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
