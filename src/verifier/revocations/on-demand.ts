import { pause } from "../../platform/clock/pause.ts";
import type { Closing } from "../closing.ts";
import { VerifierClosedError } from "../ready.ts";
import type { PolledRevocations } from "./polled-revocations.ts";

const RETRY_MS = 1000;

export type OnDemandDeps = {
  readonly keys: { isDue(nowMs: number): boolean; read(): Promise<void>; isTrusted(nowMs: number): boolean };
  readonly polls: PolledRevocations | undefined;
  readonly clock: () => number;
  readonly monotonic: () => number;
  readonly closing: Closing;
};

/** Reads keys and revocations only when a token is verified: for isolates in which nothing survives the request that began it. */
export type OnDemand = {
  /** Reads the keys and revocations that are due to be read again. Returns undefined if nothing is due. It never rejects. */
  readonly refresh: () => Promise<unknown> | undefined;
  /** Resolves when keys and revocations are known. @throws an error that no retry can fix, as of the admin token; VerifierClosedError */
  readonly ready: () => Promise<void>;
};

export function createOnDemand({ keys, polls, clock, monotonic, closing }: OnDemandDeps): OnDemand {
  const refresh = () => {
    const nowMs = monotonic();
    const due = [...(keys.isDue(nowMs) ? [keys.read()] : []), ...(polls?.isDue(nowMs, clock()) ? [polls.poll()] : [])];
    return due.length === 0 ? undefined : Promise.all(due);
  };
  const isKnown = () =>
    keys.isTrusted(monotonic()) && (polls === undefined || Number.isFinite(polls.stalenessMs(monotonic(), clock())));
  return {
    refresh,
    async ready() {
      for (;;) {
        await refresh();
        if (isKnown()) return;
        if (polls?.fault !== undefined) throw polls.fault;
        if (closing.isClosed) throw new VerifierClosedError();
        await pause(RETRY_MS);
      }
    },
  };
}
