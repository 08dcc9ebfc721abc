/** Code that mixes times of both scales, which the compiler must refuse. The code is never run. */
import { shownTime, wallTime } from "../../src/api/times.ts";
import type { Session } from "../../src/session/model.ts";
import type { AccessTokens, SessionStore } from "../../src/session/ports.ts";
import { decide, firstState } from "../../src/session/rotation.ts";
import { earliest, later, latest, type StoreMs, toStoreTime, type WallMs } from "../../src/session/time.ts";

/** Each statement below must not compile. If one does, `tsc` reports the unused `@ts-expect-error`. */
export function mixed(tokens: AccessTokens, port: SessionStore, session: Session, store: StoreMs, wall: WallMs): void {
  // @ts-expect-error A time of the wall clock is none of the store's.
  decide(firstState("n"), { generation: 1, nonce: "n", issuedAt: store }, "n", wall, 10_000);
  // @ts-expect-error A token is given the time of the store, and stamped with that of the wall clock.
  tokens.issue(session, wall);
  // @ts-expect-error A caller's time is converted before the store sees it.
  port.revokeAll(wall);
  // @ts-expect-error The same holds for a filter.
  port.listAll(1, undefined, { createdBefore: wall });
  // @ts-expect-error A time of the store is not shown as it is.
  wallTime(store);
  // @ts-expect-error A time is converted once.
  shownTime(wall, 0);
  // @ts-expect-error The same in the other direction.
  toStoreTime(store, 0);
  // @ts-expect-error Times of different scales have no order.
  earliest(store, wall);
  // @ts-expect-error The same in the other order.
  latest(wall, store);
  // @ts-expect-error They are never the same.
  if (session.createdAt === wall) return;
  // @ts-expect-error A moved time stays on its scale.
  later(store, 1) satisfies WallMs;
  // @ts-expect-error A sum is a plain number, which may be a duration: `later` returns a time.
  (store + 1) satisfies StoreMs;
}
