import { definitionOf } from "./model.ts";
import type { SubscriptionStore } from "./ports.ts";

type Seal = {
  readonly seal: (secret: string) => string;
  readonly open: (sealed: string) => string;
  readonly isOutdated: (sealed: string) => boolean;
};

/**
 * Encrypts again, with the current key, the secrets that were encrypted with an earlier key. This must happen before the earlier key is
 * removed from the key ring. A secret whose key is gone stays as it is, and the other secrets are encrypted nevertheless.
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
    // If another request changes the definition at the same time, `define` does nothing, and the next call of `sealAnew` tries again.
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
