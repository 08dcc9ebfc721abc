import type { HandlerContext } from "@connectrpc/connect";
import type { WatchRevocationsRequest } from "../../../gen/auth/admin/v1/session_admin_pb.ts";
import { patientTimeout } from "../../clock/after-reading.ts";
import { invalidRequest } from "../../session/errors.ts";
import type { FeedBatch, RevocationFeed } from "../../session/feed.ts";
import { InvalidCursor, StoreUnavailable } from "../../session/ports.ts";
import { requestContextOf } from "../request-context.ts";
import { feedTime } from "../times.ts";
import { requireScopeStill } from "./authentication.ts";
import { revocationMessage } from "./views.ts";

/**
 * How long a batch may wait for a watcher that reads nothing, in ms. Then the call is aborted. A slow watcher that still reads gets an
 * error earlier (feed.ts).
 */
const WATCHER_TIMEOUT_MS = 30_000;

type Deps = {
  readonly feed: Pick<RevocationFeed, "watch">;
  readonly revokedKeyIds: () => readonly string[];
};

/** Streams the current revocations, then every new one. The scope is checked again before each batch. */
export async function* watchRevocations(
  { feed, revokedKeyIds }: Deps,
  request: WatchRevocationsRequest,
  context: HandlerContext,
) {
  const { source } = requestContextOf(context);
  try {
    for await (const batch of feed.watch(request.cursor, context.signal)) {
      requireScopeStill(context);
      const cancelTimeout = patientTimeout(() => source.abort(), WATCHER_TIMEOUT_MS);
      try {
        yield batchMessage(batch, revokedKeyIds());
      } finally {
        cancelTimeout();
      }
    }
  } catch (error) {
    if (error instanceof InvalidCursor) throw invalidRequest("cursor", "is not a cursor");
    // Revoked keys are known without the store, so a watcher that connects during an outage must receive them.
    const keyIds = [...revokedKeyIds()];
    if (error instanceof StoreUnavailable && keyIds.length > 0) yield { cursor: request.cursor, revokedKeyIds: keyIds };
    throw error;
  }
}

function batchMessage(batch: FeedBatch, revokedKeyIds: readonly string[]) {
  return {
    revocations: batch.revocations.map(revocationMessage),
    cursor: batch.cursor,
    caughtUp: batch.caughtUp,
    asOfTime: feedTime(batch.asOf),
    ...(batch.revokedUntil > 0 && { revokedUntilTime: feedTime(batch.revokedUntil) }),
    revokedKeyIds: [...revokedKeyIds],
  };
}
