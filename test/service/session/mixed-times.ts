/** Code that mixes times of the store's clock with times of the wall clock, which the compiler must refuse. The code is never run. */
import { shownTime, wallTime } from "../../../src/service/api/times.ts";
import type { Session } from "../../../src/service/session/model.ts";
import type { AccessTokens, SessionStore } from "../../../src/service/session/ports.ts";
import { decide, firstState } from "../../../src/service/session/rotation/rotation.ts";
import { earliest, later, latest, type StoreMs, toStoreTime, type WallMs } from "../../../src/service/session/time.ts";

/** Each statement below must not compile. If one does, `tsc` reports the unused `@ts-expect-error`. */
export function mixed(tokens: AccessTokens, port: SessionStore, session: Session, store: StoreMs, wall: WallMs): void {
  // @ts-expect-error A time of the wall clock is not a time of the store.
  decide(firstState("n"), { generation: 1, nonce: "n", issuedAt: store }, "n", wall, 10_000);
  // @ts-expect-error Tokens are issued at a time of the store, and converted when they are signed.
  tokens.issue(session, wall);
  // @ts-expect-error A caller's time is converted before the store sees it.
  port.revokeAll(wall);
  // @ts-expect-error The time of a filter is converted as well.
  port.listAll(1, undefined, { createdBefore: wall });
  // @ts-expect-error A time of the store must be converted before callers see it.
  wallTime(store);
  // @ts-expect-error A time must not be converted twice.
  shownTime(wall, 0);
  // @ts-expect-error A time of the store must not be converted to the store's time again.
  toStoreTime(store, 0);
  // @ts-expect-error Times of different scales cannot be compared.
  earliest(store, wall);
  // @ts-expect-error Times of different scales cannot be compared in the other order either.
  latest(wall, store);
  // @ts-expect-error Times of different scales are never equal.
  if (session.createdAt === wall) return;
  // @ts-expect-error `later` returns a time on the scale of its argument.
  later(store, 1) satisfies WallMs;
  // @ts-expect-error A sum is a plain number, which may be a duration: `later` returns a time.
  (store + 1) satisfies StoreMs;
}
