import { Delivery } from "./delivery.ts";
import type { DeliveryDeps } from "./ports.ts";

const ROUND_MS = 1_000;

/** Delivers signals until the returned function is called. It does not keep the process running. */
export function startDelivery(deps: DeliveryDeps): () => Promise<void> {
  const delivery = new Delivery(deps);
  let stopped = false;
  let round = Promise.resolve();
  let timer: NodeJS.Timeout | undefined;
  const next = () => {
    round = delivery.round().then(() => {
      if (!stopped) timer = setTimeout(next, ROUND_MS).unref();
    });
  };
  next();
  const stopHints = deps.store.onRevocation((hint) => {
    for (const partition of new Set(hint.map((one) => deps.log.partitionOf(one)))) delivery.hint(partition);
  });
  return async () => {
    stopped = true;
    clearTimeout(timer);
    stopHints();
    await round;
    await delivery.stop().finally(() => deps.sender.close());
  };
}
