import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, createClient, createRouterTransport } from "@connectrpc/connect";
import { expect, onTestFinished, test, vi } from "vitest";
import { SessionAdminService, WatchRevocationsResponseSchema } from "../../../gen/auth/admin/v1/session_admin_pb.ts";
import { Revocations } from "../../../src/verifier/revocations/revocations.ts";
import { untilTrue } from "../../support/until.ts";

test("forgets a session when its last token has expired, so that memory is bounded", async () => {
  let now = 1_000_000;
  let sendNext = () => {};
  let delivered = 0;
  const transport = createRouterTransport(({ service }) =>
    service(SessionAdminService, {
      async *watchRevocations() {
        for (let batch = 0; ; batch += 1) {
          const revocations = Array.from({ length: 10 }, (_, index) => ({
            sessionId: `${batch}/${index}`,
            expireTime: timestampFromMs(now + 300_000),
          }));
          yield { revocations, cursor: String(batch), caughtUp: true };
          delivered = batch;
          await new Promise<void>((resolve) => {
            sendNext = resolve;
          });
        }
      },
    }),
  );
  const closing = new AbortController();
  onTestFinished(() => closing.abort());
  const revocations = new Revocations({
    client: createClient(SessionAdminService, transport),
    clock: () => now,
    monotonic: () => now,
    revokeKeys: () => {},
    report: () => {},
    signal: closing.signal,
  });
  await revocations.ready;
  for (let minute = 1; minute <= 30; minute += 1) {
    now += 60_000;
    sendNext();
    await untilTrue(() => delivered === minute && revocations.has(`${minute}/9`, 0));
    expect(revocations.has(`${minute - 4}/0`, 0)).toBe(minute >= 4); // This revocation has not expired yet, and the next one has.
    expect(revocations.has(`${minute - 5}/0`, 0)).toBe(false);
  }
});

test("does not remember a session that has expired: its tokens have, too", async () => {
  const expireTime = timestampFromMs(1_300_000);
  const revocations = [
    { sessionId: "gone", expireTime, reason: "expired" },
    { sessionId: "ended", expireTime, reason: "logout" },
  ];
  const transport = createRouterTransport(({ service }) =>
    service(SessionAdminService, {
      async *watchRevocations(_, { signal }) {
        yield { revocations, caughtUp: true };
        await new Promise((resolve) => signal.addEventListener("abort", resolve));
      },
    }),
  );
  const closing = new AbortController();
  onTestFinished(() => closing.abort());
  const followed = new Revocations({
    client: createClient(SessionAdminService, transport),
    clock: () => 1_000_000,
    monotonic: () => 1_000_000,
    revokeKeys: () => {},
    report: () => {},
    signal: closing.signal,
  });
  await followed.ready;
  expect(followed.has("ended", 0)).toBe(true);
  expect(followed.has("gone", 0)).toBe(false);
});

test.each([
  ["ahead of", 10_000_000, false],
  ["behind", 100_000, true],
])("remembers a session until its time is over by the store's time and by a clock %s it", async (_, start, after) => {
  let [wall, store, monotonic] = [start, 1_000_000, 0];
  let next = () => {};
  const batches = new ReadableStream<void>({
    start(controller) {
      next = () => controller.enqueue();
    },
  });
  const transport = createRouterTransport(({ service }) =>
    service(SessionAdminService, {
      async *watchRevocations() {
        const revocations = [{ sessionId: "a", expireTime: timestampFromMs(store + 300_000) }];
        yield { revocations, caughtUp: true, asOfTime: timestampFromMs(store) };
        let count = 0;
        for await (const _ of batches) {
          const heard = [{ sessionId: `batch ${++count}`, expireTime: timestampFromMs(store + 900_000) }];
          yield { revocations: heard, caughtUp: true, asOfTime: timestampFromMs(store) };
        }
      },
    }),
  );
  const closing = new AbortController();
  onTestFinished(() => closing.abort());
  const revocations = new Revocations({
    client: createClient(SessionAdminService, transport),
    clock: () => wall,
    monotonic: () => monotonic,
    revokeKeys: () => {},
    report: () => {},
    signal: closing.signal,
  });
  await revocations.ready;
  let count = 0;
  const hasAfter = async (ms: number) => {
    [wall, store, monotonic] = [wall + ms, store + ms, monotonic + ms];
    next();
    count += 1;
    await untilTrue(() => revocations.has(`batch ${count}`, 0));
    return revocations.has("a", 0);
  };
  expect(await hasAfter(100_000)).toBe(true);
  expect(await hasAfter(189_999)).toBe(true);
  expect(await hasAfter(10_001)).toBe(after);
});

test("keeps a session that was delivered twice until the later expiry", async () => {
  let now = 1_000_000;
  let sendNext = () => {};
  let waiting = 0;
  const revoked = (sessionId: string, lifeMs: number) => ({
    sessionId,
    expireTime: timestampFromMs(1_000_000 + lifeMs),
  });
  const batches = [
    [revoked("a", 60_000), revoked("b", 300_000)],
    [revoked("a", 300_000), revoked("b", 60_000)],
    [revoked("c", 900_000)],
  ];
  const transport = createRouterTransport(({ service }) =>
    service(SessionAdminService, {
      async *watchRevocations() {
        for (const revocations of batches) {
          yield { revocations, caughtUp: true };
          await new Promise<void>((resolve) => {
            waiting += 1;
            sendNext = resolve;
          });
        }
      },
    }),
  );
  const closing = new AbortController();
  onTestFinished(() => closing.abort());
  const revocations = new Revocations({
    client: createClient(SessionAdminService, transport),
    clock: () => now,
    monotonic: () => now,
    revokeKeys: () => {},
    report: () => {},
    signal: closing.signal,
  });
  await revocations.ready;
  await untilTrue(() => waiting === 1);
  sendNext();
  await untilTrue(() => waiting === 2);
  now += 120_000; // The next batch removes expired entries, because two minutes have passed.
  sendNext();
  await untilTrue(() => revocations.has("c", 0));
  expect(revocations.has("a", 0)).toBe(true);
  expect(revocations.has("b", 0)).toBe(true);
});

test.each([
  ["that was complete for two seconds makes it short again", 2_000, [0, 50, 100, 200, 50, 100, 200]],
  ["that fails when it is complete does not", 1_999, [0, 50, 100, 200, 400]],
] as const)("the wait before a new stream doubles, and one %s", async (_, lifeMs, expected) => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "Date"] });
  const random = vi.spyOn(Math, "random").mockReturnValue(1);
  const closing = new AbortController();
  onTestFinished(() => {
    closing.abort();
    random.mockRestore();
    vi.useRealTimers();
  });
  const calls: number[] = [];
  let nowMs = 0;
  new Revocations({
    client: {
      async *watchRevocations() {
        calls.push(Date.now());
        if (calls.length === 4) {
          yield create(WatchRevocationsResponseSchema, { caughtUp: true });
          nowMs += lifeMs;
        }
        throw new ConnectError("cut", Code.Unavailable);
      },
    },
    ...{ clock: () => 0, monotonic: () => nowMs, revokeKeys() {}, report() {}, signal: closing.signal },
  });
  await vi.advanceTimersByTimeAsync(1_000);
  const waits = calls.map((at, index) => at - (calls[index - 1] ?? at));
  expect(waits).toEqual(expected);
});
