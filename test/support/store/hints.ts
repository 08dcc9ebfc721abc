import type { Revocation } from "../../../src/service/session/model.ts";
import type { SessionStore } from "../../../src/service/session/ports.ts";

/** Records the notifications (hints) that a store sends. */
export function hints(store: SessionStore) {
  const received: (readonly Revocation[])[] = [];
  let wake = () => {};
  const stop = store.onRevocation((hint) => {
    received.push(hint);
    wake();
  });
  return {
    stop,
    /** Resolves with the first matching notification that was not taken yet. */
    async received(isIt: (hint: readonly Revocation[]) => boolean): Promise<void> {
      for (;;) {
        const hint = received.shift();
        if (hint === undefined) await new Promise<void>((resolve) => (wake = resolve));
        else if (isIt(hint)) return;
      }
    },
  };
}
