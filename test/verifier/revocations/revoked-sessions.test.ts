/** How long a verifier keeps an entry of the feed, to the millisecond. */
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { WatchRevocationsResponseSchema } from "../../../gen/auth/admin/v1/session_admin_pb.ts";
import { RevokedSessions } from "../../../src/verifier/revocations/revoked-sessions.ts";

class Known extends RevokedSessions {
  stalenessMs(): number {
    return 0;
  }
  receive(asOfMs: number, batch: MessageInitShape<typeof WatchRevocationsResponseSchema> = {}): void {
    this.apply(create(WatchRevocationsResponseSchema, { asOfTime: timestampFromMs(asOfMs), ...batch }));
  }
}

/** An ended session and a stale one, whose tokens expire at `EXPIRES`. */
const EXPIRES = 70_000;
function knowing() {
  const now = { wall: 50_000, monotonic: 100_000 };
  const known = new Known({ clock: () => now.wall, monotonic: () => now.monotonic, revokeKeys: () => {} });
  const expireTime = timestampFromMs(EXPIRES);
  known.receive(50_000, {
    revocations: [{ sessionId: "ended", expireTime }],
    staleTokens: [{ sessionId: "stale", minVersion: 3, expireTime }],
  });
  const kept = () => [known.has("ended", 1), known.minVersion("stale")];
  return { now, known, kept };
}

test.each([
  ["both clocks have reached its expiry", EXPIRES, EXPIRES, [false, 0]],
  ["the wall clock is a millisecond before it", EXPIRES - 1, EXPIRES, [true, 3]],
  ["the store is a millisecond before it", EXPIRES, EXPIRES - 1, [true, 3]],
])("an entry when %s", (_, wall, asOfMs, expected) => {
  const { now, known, kept } = knowing();
  Object.assign(now, { wall, monotonic: 110_000 });
  known.receive(asOfMs);
  expect(kept()).toEqual(expected);
});

test("entries are dropped ten seconds after they were last looked through, and not before", () => {
  const { now, known, kept } = knowing();
  Object.assign(now, { wall: EXPIRES, monotonic: 109_999 });
  known.receive(EXPIRES);
  expect(kept()).toEqual([true, 3]);
  now.monotonic = 110_000;
  known.receive(EXPIRES);
  expect(kept()).toEqual([false, 0]);
});

test("a later entry of a session neither shortens its time nor lowers its version", () => {
  const { now, known, kept } = knowing();
  const expireTime = timestampFromMs(EXPIRES - 5_000);
  known.receive(50_000, {
    revocations: [{ sessionId: "ended", expireTime }],
    staleTokens: [{ sessionId: "stale", minVersion: 2, expireTime }],
  });
  Object.assign(now, { wall: EXPIRES - 1, monotonic: 110_000 });
  known.receive(EXPIRES - 1);
  expect(kept()).toEqual([true, 3]);
});

test("the keys that a batch revokes are passed on", () => {
  const revoked: (readonly string[])[] = [];
  const known = new Known({ clock: () => 0, monotonic: () => 0, revokeKeys: (kids) => revoked.push(kids) });
  known.receive(50_000, { revokedKeyIds: ["k"] });
  expect([revoked, known.batches]).toEqual([[["k"]], 1]);
});
