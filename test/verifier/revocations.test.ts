import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { createClient, createRouterTransport } from "@connectrpc/connect";
import { expect, it, onTestFinished } from "vitest";
import { SessionAdminService } from "../../gen/auth/admin/v1/session_admin_pb.ts";
import { followRevocations } from "../../src/verifier/revocations.ts";
import { eventually } from "./support.ts";

it("forgets a session when its last token has expired, so that memory does not grow for ever", async () => {
  let now = 1_000_000;
  let beat = () => {};
  let heard = 0;
  const transport = createRouterTransport(({ service }) =>
    service(SessionAdminService, {
      async *watchRevocations() {
        for (let batch = 0; ; batch += 1) {
          const revocations = Array.from({ length: 10 }, (_, index) => ({
            sessionId: `${batch}/${index}`,
            expireTime: timestampFromMs(now + 300_000),
          }));
          yield { revocations, cursor: String(batch), caughtUp: true };
          heard = batch;
          await new Promise<void>((resolve) => {
            beat = resolve;
          });
        }
      },
    }),
  );
  const closing = new AbortController();
  onTestFinished(() => closing.abort());
  const revocations = followRevocations({
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
    beat();
    await eventually(() => heard === minute && revocations.has(`${minute}/9`, 0));
    expect(revocations.has(`${minute - 4}/0`, 0)).toBe(minute >= 4); // not expired yet
    expect(revocations.has(`${minute - 5}/0`, 0)).toBe(false);
  }
});

it("remembers a session that was told twice until the later of its times", async () => {
  let now = 1_000_000;
  let beat = () => {};
  let waiting = 0;
  const told = (sessionId: string, life: number) => ({ sessionId, expireTime: timestampFromMs(1_000_000 + life) });
  const batches = [
    [told("a", 60_000), told("b", 300_000)],
    [told("a", 300_000), told("b", 60_000)],
    [told("c", 900_000)],
  ];
  const transport = createRouterTransport(({ service }) =>
    service(SessionAdminService, {
      async *watchRevocations() {
        for (const revocations of batches) {
          yield { revocations, caughtUp: true };
          await new Promise<void>((resolve) => {
            waiting += 1;
            beat = resolve;
          });
        }
      },
    }),
  );
  const closing = new AbortController();
  onTestFinished(() => closing.abort());
  const revocations = followRevocations({
    client: createClient(SessionAdminService, transport),
    clock: () => now,
    monotonic: () => now,
    revokeKeys: () => {},
    report: () => {},
    signal: closing.signal,
  });
  await revocations.ready;
  await eventually(() => waiting === 1);
  beat();
  await eventually(() => waiting === 2);
  now += 120_000; // a sweep comes with the next batch
  beat();
  await eventually(() => revocations.has("c", 0));
  expect(revocations.has("a", 0)).toBe(true);
  expect(revocations.has("b", 0)).toBe(true);
});
