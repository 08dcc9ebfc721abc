/** What a verifier keeps, asks for and reports when its feed of revocations is interrupted. */
import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { expect, onTestFinished, test } from "vitest";
import {
  type WatchRevocationsResponse,
  WatchRevocationsResponseSchema,
} from "../../gen/auth/admin/v1/session_admin_pb.ts";
import { Revocations } from "../../src/verifier/revocations/revocations.ts";
import type { FeedDeps } from "../../src/verifier/revocations/revoked-sessions.ts";
import { until } from "../support/until.ts";

type Batch = {
  readonly ended?: string;
  readonly everyoneUntilMs?: number;
  readonly cursor: string;
  readonly caughtUp: boolean;
  readonly asOfMs?: number;
};

const batchOf = ({ ended, everyoneUntilMs, asOfMs, ...rest }: Batch): WatchRevocationsResponse =>
  create(WatchRevocationsResponseSchema, {
    ...rest,
    revocations: ended === undefined ? [] : [{ sessionId: ended, expireTime: timestampFromMs(10 ** 12) }],
    ...(everyoneUntilMs !== undefined && { revokedUntilTime: timestampFromMs(everyoneUntilMs) }),
    ...(asOfMs !== undefined && { asOfTime: timestampFromMs(asOfMs) }),
  });

/** Each stream gives its batches, and then fails, or stays open if it has no error. The last stream stays open. */
type Stream = { readonly batches: readonly Batch[]; readonly error?: Error };

function follow(streams: readonly Stream[]) {
  const cursors: string[] = [];
  const events: string[] = [];
  const closing = new AbortController();
  onTestFinished(() => closing.abort());
  const now = { ms: 1_000_000 };
  const client = {
    async *watchRevocations({ cursor }: { readonly cursor?: string }, options?: { readonly signal?: AbortSignal }) {
      cursors.push(cursor ?? "");
      const { batches, error } = streams[cursors.length - 1] ?? { batches: [] };
      for (const batch of batches) yield batchOf(batch);
      if (error !== undefined) throw error;
      await new Promise((_, reject) => options?.signal?.addEventListener("abort", () => reject(new Error("aborted"))));
    },
  } as unknown as FeedDeps["client"];
  const revocations = new Revocations({
    client,
    clock: () => now.ms,
    monotonic: () => now.ms,
    revokeKeys: () => {},
    report: ({ event }) => void events.push(event),
    signal: closing.signal,
  });
  const streamsAsked = (count: number) => until(() => expect(cursors).toHaveLength(count));
  return { revocations, cursors, events, now, streamsAsked };
}

const down = new ConnectError("down", Code.Unavailable);
const complete: Batch = { cursor: "1", caughtUp: true };

test("a feed that breaks off before it is complete goes on behind its last batch, and nothing is forgotten", async () => {
  const { revocations, cursors, events } = follow([
    { batches: [{ ended: "a", cursor: "1", caughtUp: false }], error: down },
    { batches: [{ ended: "b", cursor: "2", caughtUp: false }], error: down },
    { batches: [{ ended: "c", cursor: "3", caughtUp: true }] },
  ]);
  await revocations.ready;
  expect(cursors).toEqual(["", "1", "2"]);
  expect(["a", "b", "c", "d"].map((sid) => revocations.has(sid, 1))).toEqual([true, true, true, false]);
  // One loss is reported once, however many streams fail before the feed is complete.
  expect(events).toEqual(["feed_lost", "feed_following"]);
});

test("each loss of a complete feed is reported, and so is each return", async () => {
  const { events, streamsAsked } = follow([
    { batches: [complete, complete], error: down },
    { batches: [{ cursor: "2", caughtUp: false }], error: down },
    { batches: [complete], error: down },
    { batches: [complete] },
  ]);
  await streamsAsked(4);
  await until(() => expect(events.at(-1)).toBe("feed_following"));
  expect(events).toEqual([...["feed_following", "feed_lost", "feed_following", "feed_lost", "feed_following"]]);
});

test("a cursor that the service does not know leads to a snapshot, and what was known stays", async () => {
  const { revocations, cursors, streamsAsked } = follow([
    { batches: [{ ended: "a", everyoneUntilMs: 500, cursor: "1", caughtUp: true }], error: down },
    { batches: [], error: new ConnectError("no such cursor", Code.InvalidArgument) },
    { batches: [{ ended: "b", everyoneUntilMs: 300, cursor: "9", caughtUp: true }], error: down },
    { batches: [] },
  ]);
  await streamsAsked(4);
  expect(cursors).toEqual(["", "1", "", "9"]);
  expect(revocations.has("a", 501)).toBe(true);
  expect(revocations.has("b", 501)).toBe(true);
  // A snapshot of a store that has lost its last writes takes nothing back.
  expect([revocations.has("c", 500), revocations.has("c", 501)]).toEqual([true, false]);
});

test("during a gap, what is known becomes older, until the next stream is complete", async () => {
  const { revocations, now, streamsAsked } = follow([
    { batches: [{ cursor: "1", caughtUp: true, asOfMs: 400_000 }], error: down },
    // Another instance, whose clock is an hour ahead.
    { batches: [{ cursor: "2", caughtUp: false, asOfMs: 4_000_000 }], error: down },
    { batches: [{ cursor: "3", caughtUp: true, asOfMs: 500_000 }] },
  ]);
  await revocations.ready;
  now.ms += 7_000;
  expect(revocations.stalenessMs(now.ms, now.ms)).toBe(7_000);
  await streamsAsked(3);
  await until(() => expect(revocations.stalenessMs(now.ms, now.ms)).toBe(0));
});
