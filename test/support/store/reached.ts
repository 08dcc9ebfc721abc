import { type SessionStore, StoreRefused } from "../../../src/service/session/ports.ts";
import { until } from "../until.ts";

/**
 * Resolves when the store has connected to Redis. On a busy machine this may take longer than the store itself waits. @throws
 * StoreRefused
 */
export async function untilReached(store: SessionStore): Promise<void> {
  const refusal = await until(() =>
    store.ping().catch((error: unknown) => {
      if (error instanceof StoreRefused) return error;
      throw error;
    }),
  );
  if (refusal !== undefined) throw refusal;
}
