/** A verifier that polls reads keys and revocations only when a token needs them. */
import { create } from "@bufbuild/protobuf";
import { beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { WatchRevocationsResponseSchema } from "../../../gen/auth/admin/v1/session_admin_pb.ts";
import { shareByPolling } from "../../../src/verifier/one-at-a-time.ts";
import { PolledRevocations } from "../../../src/verifier/revocations/polled-revocations.ts";
import { createVerifier as createWebVerifier } from "../../../src/verifier/web/index.ts";
import { follow } from "../../support/verifier/follow.ts";
import { AUDIENCE, ISSUER, startIssuer } from "../../support/verifier/issuer.ts";

const POLLS = { pollIntervalMs: 2000, policy: "refuse" } as const;

describe("a verifier that polls", () => {
  test("reads nothing before the first token, and then once for all that come at the same time", async () => {
    const issuer = await startIssuer();
    const { verdictOf, verifier } = follow(issuer, POLLS);
    const { token } = issuer.issue();
    expect(verifier.stalenessMs()).toBe(Number.POSITIVE_INFINITY);
    expect([issuer.seen.jwks, issuer.seen.cursors]).toEqual([0, []]);
    expect(await Promise.all(Array.from({ length: 20 }, () => verdictOf(token)))).toEqual(Array(20).fill("ok"));
    expect([issuer.seen.jwks, issuer.seen.cursors]).toEqual([1, [""]]);
  });

  test("learns of a logout with the first token after the interval, from where it was", async () => {
    const issuer = await startIssuer();
    const { verdictOf, moved } = follow(issuer, POLLS);
    const { sid, token } = issuer.issue();
    const other = issuer.issue();
    issuer.revoke(other.sid);
    expect([await verdictOf(token), await verdictOf(other.token)]).toEqual(["ok", "revoked"]);
    issuer.revoke(sid);
    expect([await verdictOf(token), issuer.seen.cursors.length]).toEqual(["ok", 1]);
    moved.monotonic += 2000;
    expect(await verdictOf(token)).toBe("revoked");
    expect(issuer.seen.cursors).toEqual(["", "1"]);
  });

  test("accepts nothing beyond maxStalenessMs of an outage, and learns then what it has missed", async () => {
    const issuer = await startIssuer();
    const { verdictOf, moved, events } = follow(issuer, { ...POLLS, maxStalenessMs: 10_000 });
    const { sid, token } = issuer.issue();
    expect(await verdictOf(token)).toBe("ok");
    issuer.state.isUp = false;
    issuer.revoke(sid);
    moved.monotonic += 9000;
    expect(await verdictOf(token)).toBe("ok");
    moved.monotonic += 1000;
    expect(await verdictOf(token)).toBe("unavailable");
    issuer.state.isUp = true;
    moved.monotonic += 1000;
    expect(await verdictOf(token)).toBe("revoked");
    expect(events.map(({ event }) => event).filter((event) => event.startsWith("feed"))).toEqual([
      ...["feed_following", "feed_lost", "feed_following"],
    ]);
  });

  test("does not repeat a poll that has failed within a second", async () => {
    const issuer = await startIssuer();
    issuer.state.isUp = false;
    const { verdictOf } = follow(issuer, POLLS);
    const { token } = issuer.issue();
    for (let call = 0; call < 5; call++) expect(await verdictOf(token)).toBe("unavailable");
    expect(issuer.seen.cursors).toHaveLength(1);
  });

  test("refuses nobody beside the first poll after an outage, which brings what all of them need", async () => {
    const issuer = await startIssuer();
    const { verdictOf, moved } = follow(issuer, { ...POLLS, maxStalenessMs: 10_000 });
    const [live, ended] = [issuer.issue(), issuer.issue()];
    expect([await verdictOf(live.token), await verdictOf(ended.token)]).toEqual(["ok", "ok"]);
    issuer.state.isUp = false;
    issuer.revoke(ended.sid);
    moved.monotonic += 10_001;
    expect(await verdictOf(live.token)).toBe("unavailable");
    issuer.state.isUp = true;
    moved.monotonic += 1000;
    // Each token is verified twice, but the first verification has already begun a poll, so the second begins none.
    const verdicts = [live, ended, live, ended].map(({ token }) => verdictOf(token));
    expect(await Promise.all(verdicts)).toEqual(["ok", "revoked", "ok", "revoked"]);
    expect(issuer.seen.cursors).toHaveLength(3);
  });

  test("refuses those beside a poll that fails, too", async () => {
    const issuer = await startIssuer();
    const { verdictOf, moved } = follow(issuer, { ...POLLS, maxStalenessMs: 10_000 });
    const { token } = issuer.issue();
    expect(await verdictOf(token)).toBe("ok");
    issuer.state.isUp = false;
    for (let outage = 0; outage < 2; outage++) {
      moved.monotonic += 10_001;
      expect(await Promise.all([verdictOf(token), verdictOf(token)])).toEqual(["unavailable", "unavailable"]);
    }
  });

  test("begins again with a snapshot when its cursor is refused", async () => {
    const issuer = await startIssuer();
    const { verdictOf, moved } = follow(issuer, { ...POLLS, maxStalenessMs: 10_000 });
    const { token } = issuer.issue();
    expect(await verdictOf(token)).toBe("ok");
    issuer.state.acceptsCursors = false;
    moved.monotonic += 2000;
    expect(await verdictOf(token)).toBe("ok");
    moved.monotonic += 2000;
    expect(await verdictOf(token)).toBe("ok");
    expect(issuer.seen.cursors).toEqual(["", "0", ""]);
  });

  test("is ready when keys and revocations are known, and says that its token is refused", async () => {
    const issuer = await startIssuer();
    const { verifier } = follow(issuer, POLLS);
    await verifier.ready;
    expect(verifier.stalenessMs()).toBeLessThan(Number.POSITIVE_INFINITY);
    const refused = follow(issuer, { ...POLLS, adminToken: "wrong" });
    await expect(refused.verifier.ready).rejects.toThrow("does not accept the verifier's adminToken");
  });

  test.each([-1, Number.NaN, 5001])("refuses an interval of %s ms", async (pollIntervalMs) => {
    const issuer = await startIssuer();
    expect(() => follow(issuer, { pollIntervalMs })).toThrow(RangeError);
  });
});

test.each([
  ["monotonic", { monotonic: 3_000, wall: 0 }],
  ["wall", { monotonic: 0, wall: 3_000 }],
])("what a poll has brought is as old as its request, by the %s clock", async (_, took) => {
  const now = { monotonic: 0, wall: 0 };
  const polled = new PolledRevocations({
    client: {
      async *watchRevocations() {
        Object.assign(now, took);
        yield create(WatchRevocationsResponseSchema, { caughtUp: true });
      },
    },
    ...{ pollIntervalMs: 2_000, clock: () => now.wall, monotonic: () => now.monotonic, revokeKeys() {}, report() {} },
  });
  await polled.poll();
  expect(polled.stalenessMs(now.monotonic, now.wall)).toBe(3_000);
});

test("outside of Node, options of Node's connections are refused", () => {
  const options = { issuer: ISSUER, audience: AUDIENCE, adminUrl: "https://admin.example", nodeOptions: {} };
  expect(() => createWebVerifier(options)).toThrow("nodeOptions need Node");
});

test("a request whose runtime has ended it holds up the others for a second, and one of them takes over", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const turns = shareByPolling();
  void turns.run(() => new Promise(() => {}));
  let ran = 0;
  const work = Promise.withResolvers<void>();
  const others = Array.from({ length: 10 }, () =>
    turns.run(() => {
      ran += 1;
      return work.promise;
    }),
  );
  await vi.advanceTimersByTimeAsync(900);
  expect(ran).toBe(0);
  await vi.advanceTimersByTimeAsync(200);
  expect([ran, turns.isUnderWay()]).toEqual([1, true]);
  work.resolve();
  await vi.advanceTimersByTimeAsync(20);
  await Promise.all(others);
  expect([ran, turns.isUnderWay()]).toEqual([1, false]);
});

describe("work that does not end", () => {
  const never = () => new Promise<void>(() => {});
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    return () => void vi.useRealTimers();
  });

  test("is taken over after exactly a second", async () => {
    const turns = shareByPolling();
    void turns.run(never);
    const takingOver = vi.fn(never);
    void turns.run(takingOver);
    await vi.advanceTimersByTimeAsync(999);
    expect(takingOver).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(1);
    expect(takingOver).toHaveBeenCalled();
  });

  test("and that another caller has taken over has a second again", async () => {
    const turns = shareByPolling();
    void turns.run(never);
    const [second, third] = [vi.fn(never), vi.fn(never)];
    void turns.run(second);
    await vi.advanceTimersByTimeAsync(500);
    void turns.run(third);
    await vi.advanceTimersByTimeAsync(500);
    expect(second).toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(980);
    expect(third).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(30);
    expect(third).toHaveBeenCalled();
  });

  test("is waited for until it ends, and for exactly a second", async () => {
    const settled = vi.fn();
    const ending = shareByPolling();
    const work = Promise.withResolvers<void>();
    void ending.run(() => work.promise);
    void ending.settle().then(settled);
    await vi.advanceTimersByTimeAsync(500);
    expect(settled).not.toHaveBeenCalled();
    work.resolve();
    await vi.advanceTimersByTimeAsync(10);
    expect(settled).toHaveBeenCalledTimes(1);
    const endless = shareByPolling();
    void endless.run(never);
    void endless.settle().then(settled);
    await vi.advanceTimersByTimeAsync(999);
    expect(settled).toHaveBeenCalledTimes(1);
    await vi.advanceTimersByTimeAsync(1);
    expect(settled).toHaveBeenCalledTimes(2);
    await shareByPolling().settle();
  });
});

test("outside of Node, a call of the admin API is one binary message, whose response is not followed elsewhere", async () => {
  const calls: RequestInit[] = [];
  const fetch = async (url: string | URL | Request, init: RequestInit = {}) => {
    if (String(url).startsWith("http://admin.example")) calls.push(init);
    return new Response(null, { status: 401 });
  };
  const options = {
    issuer: ISSUER,
    audience: AUDIENCE,
    adminUrl: "http://admin.example",
    adminToken: " t\n",
    ...POLLS,
  };
  const verifier = createWebVerifier({
    ...options,
    jwksUrl: "http://keys.example",
    fetch: fetch as typeof globalThis.fetch,
  });
  await expect(verifier.ready).rejects.toThrow("adminToken");
  const [{ method, redirect, body, signal, headers } = {}] = calls;
  expect({ method, redirect }).toEqual({ method: "POST", redirect: "manual" });
  expect((body as Uint8Array).length).toBeGreaterThan(0);
  expect(signal).toBeInstanceOf(AbortSignal);
  const sent = headers as Headers;
  expect(["authorization", "content-type", "connect-accept-encoding"].map((name) => sent.get(name))).toEqual([
    ...["Bearer t", "application/connect+proto", null],
  ]);
});

test("a verifier that follows is refused where nothing runs between requests, and one that polls is not", async () => {
  const options = { issuer: ISSUER, audience: AUDIENCE, jwksUrl: "http://127.0.0.1:1" };
  vi.stubGlobal("setTimeout", () => {
    throw new Error("no timers in the global scope");
  });
  onTestFinished(() => void vi.unstubAllGlobals());
  expect(() => createWebVerifier(options)).toThrow("pollIntervalMs is required");
  const polling = createWebVerifier({ ...options, ...{ pollIntervalMs: 2000 } });
  expect(polling.stalenessMs()).toBe(Number.POSITIVE_INFINITY);
});

test("an outage is unavailable where setImmediate only throws, as in Next.js's edge functions", async () => {
  const issuer = await startIssuer();
  const { verdictOf, moved } = follow(issuer, { ...POLLS, maxStalenessMs: 10_000 });
  const { token } = issuer.issue();
  expect(await verdictOf(token)).toBe("ok");
  issuer.state.isUp = false;
  moved.monotonic += 11_000;
  const original = setImmediate;
  vi.stubGlobal("setImmediate", (then: () => void) => {
    // What runs this test needs it, and only the verifier gets none.
    if (new Error().stack?.includes("after-reading.ts")) throw new Error("not supported in the Edge Runtime");
    return original(then);
  });
  onTestFinished(() => void vi.unstubAllGlobals());
  expect(await verdictOf(token)).toBe("unavailable");
});

test("what cannot be a token causes no read", async () => {
  const issuer = await startIssuer();
  const { verdictOf } = follow(issuer, POLLS);
  for (const text of ["", "a.b.c", "x".repeat(20_000)]) expect(await verdictOf(text)).toBe("malformed");
  expect([issuer.seen.jwks, issuer.seen.cursors]).toEqual([0, []]);
});
