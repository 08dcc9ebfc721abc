import type { LogEntry } from "../../../src/service/session/model.ts";
import type { SessionStore } from "../../../src/service/session/ports.ts";

/** Records the notifications (hints) that a store sends. */
export function hints(store: SessionStore) {
  const received: (readonly LogEntry[])[] = [];
  let wake = () => {};
  const stop = store.onRevocation((hint) => {
    received.push(hint);
    wake();
  });
  return {
    stop,
    /** Resolves with the first matching notification that was not taken yet. */
    async received(isIt: (hint: readonly LogEntry[]) => boolean): Promise<void> {
      for (;;) {
        const hint = received.shift();
        if (hint === undefined) await new Promise<void>((resolve) => (wake = resolve));
        else if (isIt(hint)) return;
      }
    },
  };
}
