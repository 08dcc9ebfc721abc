/** Tokens from before a change of their session are refused as stale, and the session goes on. */
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { createClient, createRouterTransport } from "@connectrpc/connect";
import { expect, onTestFinished, test } from "vitest";
import { SessionAdminService } from "../../gen/auth/admin/v1/session_admin_pb.ts";
import { thumbprintBytes } from "../../src/service/session/devices/key.ts";
import { storeMs } from "../../src/service/session/time.ts";
import { authorize } from "../../src/verifier/index.ts";
import { Revocations } from "../../src/verifier/revocations/revocations.ts";
import { clientKey, dpop } from "../support/dpop.ts";
import { untilTrue } from "../support/until.ts";
import { follow } from "../support/verifier/follow.ts";
import { startIssuer } from "../support/verifier/issuer.ts";

const CHALLENGE = 'Bearer error="invalid_token", error_description="stale"';

test("a change reaches the next verification, of cached and of new tokens; the next token is accepted", async () => {
  const issuer = await startIssuer();
  const { verifier, verdictOf } = follow(issuer, { policy: "refuse" });
  await verifier.ready;
  const { sid, token } = issuer.issue();
  const [again, bystander] = [issuer.issue({ sid }), issuer.issue()];
  const [first, second] = [1, 2].map((sv) => issuer.changeClaims({ sv }, token)) as [string, string];
  expect(await verdictOf(token)).toBe("ok");
  issuer.change(sid, 1);
  await untilTrue(async () => (await verdictOf(token)) === "stale");
  expect(await Promise.all([again.token, first, second, bystander.token].map(verdictOf))).toEqual([
    ...["stale", "ok", "ok", "ok"],
  ]);
  expect(await authorize(verifier, `Bearer ${token}`)).toMatchObject({
    ...{ status: 401, reason: "stale", headers: { "www-authenticate": CHALLENGE } },
  });
  issuer.change(sid, 2);
  await untilTrue(async () => (await verdictOf(first)) === "stale");
  expect(await verdictOf(second)).toBe("ok");
  issuer.revoke(sid);
  await untilTrue(async () => (await verdictOf(second)) === "revoked");
  expect(verifier.state().refusals.stale?.count).toBeGreaterThan(0);
});

test("a bound token that is stale is challenged for its scheme", async () => {
  const issuer = await startIssuer();
  const { verifier, verdictOf } = follow(issuer, { policy: "refuse" });
  await verifier.ready;
  const key = clientKey();
  const bound = { algorithm: "DPoP", thumbprint: thumbprintBytes(key.thumbprint) } as const;
  const { sid, token } = issuer.issue({ device: { key: bound, state: "bound", since: storeMs(0) } });
  const probe = issuer.issue({ sid });
  issuer.change(sid, 1);
  await untilTrue(async () => (await verdictOf(probe.token)) === "stale");
  const url = "https://api.example/things";
  const headers = new Headers({ authorization: `DPoP ${token}`, dpop: dpop(key, url, { accessToken: token }) });
  expect(await authorize(verifier, { method: "POST", url, headers })).toMatchObject({
    ...{ status: 401, reason: "stale" },
    headers: { "www-authenticate": expect.stringMatching(/^DPoP error="invalid_token", .*error_description="stale"$/) },
  });
});

test("a change is known when the verifier is ready, and missed by no interruption", async () => {
  const issuer = await startIssuer();
  const changed = Array.from({ length: 9 }, () => issuer.issue());
  for (const { sid } of changed) issuer.change(sid, 1);
  const { verifier, verdictOf, next } = follow(issuer, { policy: "refuse" });
  await verifier.ready;
  for (const { token } of changed) expect(await verdictOf(token)).toBe("stale");
  const { sid, token } = issuer.issue();
  const lost = next("feed_lost");
  issuer.closeConnections();
  await lost;
  issuer.change(sid, 1);
  await untilTrue(async () => (await verdictOf(token)) === "stale");
  expect(issuer.seen.cursors).toEqual(["", "9"]);
});

test("a verifier that polls learns of a change with the first token after the interval", async () => {
  const issuer = await startIssuer();
  const { verdictOf, moved } = follow(issuer, { pollIntervalMs: 2000, policy: "refuse" });
  const { sid, token } = issuer.issue();
  expect(await verdictOf(token)).toBe("ok");
  issuer.change(sid, 1);
  expect(await verdictOf(token)).toBe("ok");
  moved.monotonic += 2000;
  expect(await verdictOf(token)).toBe("stale");
  expect(await verdictOf(issuer.changeClaims({ sv: 1 }, token))).toBe("ok");
});

test.each([
  ["ahead of", 10_000_000, 0],
  ["behind", 100_000, 2],
])("a mark is remembered until its time is over by the store's time and by a clock %s it", async (_, start, after) => {
  let [wall, store, monotonic, count] = [start, 1_000_000, 0, 0];
  let send = () => {};
  const batches = new ReadableStream<void>({
    start(controller) {
      send = () => controller.enqueue();
    },
  });
  const asOfTime = () => timestampFromMs(store);
  const transport = createRouterTransport(({ service }) =>
    service(SessionAdminService, {
      async *watchRevocations() {
        const mark = (minVersion: number, ms: number) => ({
          ...{ sessionId: "a", minVersion, expireTime: timestampFromMs(store + ms) },
        });
        // A mark that is repeated, or lower, shortens no life and lowers no version.
        const staleTokens = [mark(2, 200_000), mark(1, 300_000), mark(2, 100_000)];
        yield { staleTokens, caughtUp: true, asOfTime: asOfTime() };
        for await (const _ of batches) yield { caughtUp: true, asOfTime: asOfTime() };
      },
    }),
  );
  const closing = new AbortController();
  onTestFinished(() => closing.abort());
  const revocations = new Revocations({
    client: createClient(SessionAdminService, transport),
    ...{ clock: () => wall, monotonic: () => monotonic, revokeKeys: () => {}, report: () => {} },
    signal: closing.signal,
  });
  await revocations.ready;
  const minVersionAfter = async (ms: number) => {
    [wall, store, monotonic] = [wall + ms, store + ms, monotonic + ms];
    send();
    count += 1;
    await untilTrue(() => revocations.batches === count + 1);
    return revocations.minVersion("a");
  };
  expect(await minVersionAfter(100_000)).toBe(2);
  expect(await minVersionAfter(189_999)).toBe(2);
  expect(await minVersionAfter(10_001)).toBe(after);
});
