import { definitionOf } from "./model.ts";
import type { SubscriptionStore } from "./ports.ts";

type Seal = {
  readonly seal: (secret: string) => string;
  readonly open: (sealed: string) => string;
  readonly isOutdated: (sealed: string) => boolean;
};

/**
 * Seals secrets under the current key that are sealed under an earlier one, before the ring removes that key. A secret whose key is gone
 * is left as it is, and does not keep the others from being sealed.
 */
export async function sealAnew(
  subscriptions: Pick<SubscriptionStore, "known" | "define">,
  { seal, open, isOutdated }: Seal,
): Promise<void> {
  for (const subscription of await subscriptions.known()) {
    const { id, sealedSecret } = subscription;
    if (sealedSecret === undefined || !isOutdated(sealedSecret)) continue;
    const secret = opened(open, sealedSecret);
    if (secret === undefined) continue;
    const before = definitionOf(subscription);
    // A change at the same time wins: the next round seals its secret.
    await subscriptions.define(id, { ...before, sealedSecret: seal(secret) }, before);
  }
}

function opened(open: Seal["open"], sealed: string): string | undefined {
  try {
    return open(sealed);
  } catch {
    return undefined;
  }
}
