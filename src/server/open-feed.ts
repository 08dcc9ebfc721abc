import { steadyClock } from "../clock/steady.ts";
import { turns } from "../clock/turns.ts";
import type { Logger } from "../observability/logger.ts";
import { createRevocationFeed, type RevocationFeed } from "../session/feed.ts";
import type { SessionStore } from "../session/ports.ts";
import type { Entropy } from "../tokens/random.ts";

/** Opens the revocation feed of this instance, under a name that no other process has. */
export function openFeed(store: SessionStore, entropy: Pick<Entropy, "text">, log: Logger): RevocationFeed {
  const onError = (err: unknown) =>
    log.error(
      { event: "feed_unreadable", err },
      "the revocation log cannot be read: the feed is silent until it can be",
    );
  const instance = entropy.text(12);
  return createRevocationFeed({ store, clock: steadyClock, ranMs: () => turns.ranMs(), instance, onError });
}
