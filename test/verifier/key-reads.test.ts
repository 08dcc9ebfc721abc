/** When a key set is read again, trusted and withdrawn, to the millisecond. */
import { describe, expect, test } from "vitest";
import type { PublishedKey } from "../../src/verifier/keys/jwk.ts";
import { KeySet } from "../../src/verifier/keys/key-set.ts";
import type { VerifierEvent } from "../../src/verifier/refusals/report.ts";

const START = 5_000;

/** Returns a key set that is read on demand, whose keys are `kid=material` in place of JWKs. */
function start(isOnDemand = true) {
  const now = { ms: START };
  const events: VerifierEvent[] = [];
  const served = { keys: ["a=1", "b=1"] as readonly string[] | undefined, maxAge: 60, reads: 0 };
  const signals: AbortSignal[] = [];
  const fetch = async (_: unknown, { signal }: RequestInit) => {
    served.reads++;
    signals.push(signal as AbortSignal);
    const headers = { "cache-control": `max-age=${served.maxAge}` };
    return new Response(JSON.stringify(served.keys && { keys: served.keys }) ?? "null", { headers });
  };
  const importKey = (jwk: unknown): PublishedKey => {
    const [kid = "", material = ""] = String(jwk).split("=");
    return { kid, alg: "ES256", material, withdrawn: false, verifies: () => true };
  };
  const closing = new AbortController();
  const keys = new KeySet(
    {
      ...{ url: "http://127.0.0.1/jwks", fetch: fetch as typeof globalThis.fetch, monotonic: () => now.ms },
      ...{ report: (event) => events.push(event), isOnDemand, signal: closing.signal },
    },
    importKey,
  );
  return { keys, now, served, events, signals, closing };
}

describe("a key set", () => {
  test("is due at first, and again when its max-age has passed", async () => {
    const { keys, now } = start();
    expect([keys.isDue(START), keys.isTrusted(START)]).toEqual([true, false]);
    await keys.read();
    expect([START, START + 59_999, START + 60_000].map((ms) => keys.isDue(ms))).toEqual([false, false, true]);
    now.ms = START + 60_000;
    await keys.read();
    expect(keys.isDue(START + 60_001)).toBe(false);
  });

  test("is trusted for an hour after the request of its last successful read", async () => {
    const { keys, now, served } = start();
    await keys.read();
    now.ms += 1_000;
    served.keys = undefined;
    await keys.read();
    expect([3_599_999, 3_600_000, 3_600_001].map((ms) => keys.isTrusted(START + ms))).toEqual([true, true, false]);
    expect(keys.kids).toEqual(["a", "b"]);
  });

  test("that cannot be read is due after a second, and each outage is reported once", async () => {
    const { keys, now, served, events, signals } = start();
    const [set, none] = [served.keys, undefined];
    for (served.keys of [set, set, none, none, set]) {
      now.ms += 10_000;
      await keys.read();
      if (served.keys === none) expect([999, 1000].map((ms) => keys.isDue(now.ms + ms))).toEqual([false, true]);
    }
    expect(events).toEqual([
      { event: "keys_read", kids: ["a", "b"] },
      { event: "keys_unreadable", error: new Error("not a key set") },
      { event: "keys_read", kids: ["a", "b"] },
    ]);
    // What a call holds is released at its end.
    expect(signals.map(({ aborted }) => aborted)).toEqual(Array(5).fill(true));
  });

  test("that cannot be read at first is reported, too", async () => {
    const { keys, served, events } = start();
    served.keys = undefined;
    await keys.read();
    expect(events.map(({ event }) => event)).toEqual(["keys_unreadable"]);
    expect(await keys.refresh()).toBe(false);
  });

  test("is read again for an unknown key at most once a second", async () => {
    const { keys, now, served } = start();
    expect([await keys.refresh(), served.reads]).toEqual([true, 1]);
    now.ms += 999;
    expect([await keys.refresh(), served.reads]).toEqual([true, 1]);
    now.ms += 1;
    expect([await keys.refresh(), served.reads]).toEqual([true, 2]);
  });

  test("that is followed is read without a request, and one read is shared", async () => {
    const { keys, served, closing } = start(false);
    await Promise.all([keys.ready, keys.read(), keys.refresh()]);
    expect(served.reads).toBe(1);
    await keys.read();
    expect(served.reads).toBe(2);
    closing.abort();
  });
});

describe("a key", () => {
  test("is kept while its members are the same, and otherwise withdrawn, with the known headers", async () => {
    const { keys, served } = start();
    await keys.read();
    const [a, b] = [keys.find("a"), keys.find("b")] as [PublishedKey, PublishedKey];
    keys.rememberHeader("h", a);
    await keys.read();
    expect([keys.find("a") === a, keys.headers.get("h") === a, a.withdrawn]).toEqual([true, true, false]);
    served.keys = ["a=1", "a=2", "b=2"];
    await keys.read();
    expect([keys.find("a") === a, a.withdrawn, b.withdrawn, keys.headers.size]).toEqual([true, false, true, 0]);
    expect(keys.find("b")).toMatchObject({ material: "2", withdrawn: false });
    served.keys = ["b=2"];
    await keys.read();
    expect([keys.find("a"), a.withdrawn]).toEqual([undefined, true]);
  });

  test("that is revoked is withdrawn, whether it is known or not, and once", async () => {
    const { keys } = start();
    await keys.read();
    const [a, b] = [keys.find("a"), keys.find("b")] as [PublishedKey, PublishedKey];
    keys.rememberHeader("h", b);
    keys.revoke(["unknown", "a"]);
    expect(["unknown", "a", "b"].map((kid) => keys.isRevoked(kid))).toEqual([true, true, false]);
    expect([a.withdrawn, b.withdrawn, keys.headers.size]).toEqual([true, false, 0]);
    keys.rememberHeader("h", b);
    keys.revoke(["a"]);
    expect(keys.headers.size).toBe(1);
  });

  test("is remembered by at most a hundred headers", async () => {
    const { keys } = start();
    await keys.read();
    const key = keys.find("a") as PublishedKey;
    for (let header = 0; header < 100; header++) keys.rememberHeader(`${header}`, key);
    expect(keys.headers.size).toBe(100);
    keys.rememberHeader("one more", key);
    expect([...keys.headers.keys()]).toEqual(["one more"]);
  });
});
