/** Device binding by script, against a simulated service with the real proofs, challenges and cookies. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { withDeviceKey } from "../../../src/browser/device/index.ts";
import type { Realm } from "../../../src/browser/realm.ts";
import { DeviceWorld, type Network, TTL_MS } from "./world.ts";

const HEAD_START_MS = 5_000;
const RENEWAL = "/v1/auth/device/refresh";
const REGISTRATION = "/v1/auth/device";
const REFRESH = "/v1/auth/refresh";

/** Creates a world in which the session has just been bound. */
async function bound(): Promise<{ world: DeviceWorld; tab: Realm }> {
  const world = new DeviceWorld();
  const tab = world.openTab();
  expect(await world.refresh(tab)).toBe(200);
  await world.pass(HEAD_START_MS);
  expect(world.session.key).toBeDefined();
  world.requests.length = 0;
  return { world, tab };
}

describe("a browser without device bound sessions", () => {
  test("registers a key some seconds after the offer", async () => {
    const world = new DeviceWorld();
    const tab = world.openTab();
    await world.refresh(tab);
    await world.pass(HEAD_START_MS - 1);
    expect(world.requests).toEqual([REFRESH]);
    await world.pass(1);
    expect(world.requests).toEqual([REFRESH, RENEWAL, REGISTRATION]);
    expect(world.deviceCookie).toBeDefined();
  });

  test("renews before each refresh, in one request once it has a challenge", async () => {
    const { world, tab } = await bound();
    for (let life = 0; life < 5; life++) {
      await world.pass(TTL_MS);
      expect(await world.refresh(tab)).toBe(200);
    }
    expect(world.requests).toEqual(Array.from({ length: 5 }, () => [RENEWAL, REFRESH]).flat());
  });

  test("asks for another challenge when its own is too old", async () => {
    const { world, tab } = await bound();
    await world.pass(3 * TTL_MS);
    expect(await world.refresh(tab)).toBe(200);
    expect(world.requests).toEqual([RENEWAL, RENEWAL, REFRESH]);
  });

  test("does not renew again right after a renewal", async () => {
    const { world, tab } = await bound();
    await world.pass(50_000);
    expect(await world.refresh(tab)).toBe(200);
    expect(world.requests).toEqual([REFRESH]);
  });

  test("renews at once when the cookie that it counts on is gone", async () => {
    const { world, tab } = await bound();
    await world.pass(30_000);
    world.deviceCookie = undefined;
    const response = await tab.fetch("https://app.example/v1/auth/refresh", { method: "POST" });
    expect(response.status).toBe(200);
    expect(world.requests).toEqual([REFRESH, RENEWAL, REFRESH]);
  });

  test.each<Network>(["outage", "limited", "portal"])("sends no refresh after a renewal in: %s", async (network) => {
    const { world, tab } = await bound();
    await world.pass(TTL_MS);
    Object.assign(world, { network, sparesRefreshes: true });
    expect(await world.refresh(tab)).not.toBe(401);
    expect(world.requests).toEqual([]);
  });

  test("registers one key from many tabs, which all use it", async () => {
    const world = new DeviceWorld();
    const tabs = Array.from({ length: 5 }, () => world.openTab());
    await Promise.all(tabs.map((tab) => world.refresh(tab)));
    await world.pass(HEAD_START_MS);
    for (const tab of tabs) {
      await world.pass(TTL_MS);
      expect(await world.refresh(tab)).toBe(200);
    }
    expect(world.wrongRefusals).toBe(0);
  });

  test("finds its key again after a reload", async () => {
    const { world } = await bound();
    await world.pass(TTL_MS);
    expect(await world.refresh(world.openTab())).toBe(200);
  });

  test("leaves a session alone that the browser has bound by itself", async () => {
    const { world } = await bound();
    world.storage.clear();
    const other = world.openTab();
    world.requests.length = 0;
    // Simulates a response that the service made before the session was bound: it still offers to register a key.
    const before = world.session.key;
    world.session.key = undefined as never;
    await world.refresh(other);
    world.session.key = before as never;
    await world.pass(HEAD_START_MS);
    expect(world.requests).toEqual([REFRESH, RENEWAL]);
    expect(world.session.key).toBe(before);
  });

  test("binds the session of the next user with another key, and takes the first one up again", async () => {
    const { world, tab } = await bound();
    const first = world.session;
    world.signIn();
    expect(await world.refresh(tab)).toBe(200);
    await world.pass(HEAD_START_MS);
    expect(world.session.key?.thumbprint).not.toEqual(first.key?.thumbprint);
    await world.pass(TTL_MS);
    expect(await world.refresh(tab)).toBe(200);
    world.session = first;
    await world.pass(TTL_MS);
    expect(await world.refresh(tab)).toBe(200);
  });

  test("registers the same key again when an operator has unbound the session", async () => {
    const { world, tab } = await bound();
    const { key } = world.session;
    delete world.session.key;
    await world.pass(TTL_MS);
    expect(await world.refresh(tab)).toBe(200);
    await world.pass(HEAD_START_MS);
    expect(world.session.key).toEqual(key);
  });

  test("goes on without binding while the service has it off, or no storage for keys", async () => {
    const { world, tab } = await bound();
    world.on = false;
    await world.pass(TTL_MS);
    expect(await world.refresh(tab)).toBe(200);
    const other = new DeviceWorld();
    other.storage.state = "broken";
    const unable = other.openTab();
    for (let time = 0; time < 3; time++) {
      expect(await other.refresh(unable)).toBe(200);
      await other.pass(TTL_MS);
    }
    expect(other.session.key).toBeUndefined();
  });

  test.each([
    ["IndexedDB or crypto", {}],
    ["IndexedDB", { crypto }],
    ["crypto", { indexedDB: new DeviceWorld().storage.indexedDB }],
    ["crypto.subtle, as on a page over http", { indexedDB: new DeviceWorld().storage.indexedDB, crypto: {} }],
  ])("returns its realm as it is where there is no %s", (_, given) => {
    const realm = { fetch, ...given } as unknown as Realm;
    expect(withDeviceKey(realm)).toBe(realm);
  });

  test("leaves functions and classes of the browser as usable as they are", () => {
    const { indexedDB } = new DeviceWorld().storage;
    const platform = { fetch, indexedDB, crypto, Date, BroadcastChannel, Math, performance };
    const global = {
      ...platform,
      // The function is written as a method, because methods have no `prototype`, like the built-in functions of browsers.
      setTimeout() {
        if (this !== global) throw new TypeError("Illegal invocation");
        return 1;
      },
    };
    const realm = withDeviceKey(global as unknown as Realm);
    expect(realm.setTimeout(() => {}, 1)).toBe(1);
    expect(realm.Date.now()).toBeCloseTo(Date.now(), -4);
    expect(realm.BroadcastChannel).toBe(BroadcastChannel);
    expect(realm.Math.random()).toBeLessThan(1);
  });

  test("does not hang when storage never responds", async () => {
    const { world, tab } = await bound();
    world.storage.state = "stalled";
    const over = new AbortController();
    const refreshed = tab.fetch("https://app.example/v1/auth/refresh", { method: "POST", signal: over.signal });
    over.abort(new Error("too long"));
    await expect(refreshed).rejects.toThrow("too long");
  });

  test("keeps a private key that no script can read", async () => {
    const { world } = await bound();
    const { createDeviceKeys } = await import("../../../src/browser/device/keys.ts");
    const keys = createDeviceKeys(
      { indexedDB: world.storage.indexedDB, crypto },
      "session-device/1:https://app.example",
    );
    const [record] = await keys.all();
    expect(record?.sid).toBe(world.session.sid);
    expect(record?.keys.privateKey.extractable).toBe(false);
    await expect(crypto.subtle.exportKey("jwk", record?.keys.privateKey as CryptoKey)).rejects.toThrow();
  });

  test("passes on what is no refresh", async () => {
    const { world, tab } = await bound();
    await tab.fetch("https://app.example/v1/auth/logout", { method: "POST" }).catch(() => {});
    expect(world.requests).toEqual(["/v1/auth/logout"]);
  });
});

describe("whatever the network does", () => {
  const network = fc.constantFrom<Network>("up", "cut", "lost", "outage", "limited", "portal");
  const step = fc.oneof(
    {
      weight: 5,
      arbitrary: fc.record({
        do: fc.constant("refresh" as const),
        tab: fc.nat(2),
        under: network,
        spares: fc.boolean(),
      }),
    },
    // The network changes after some more requests, for example between the renewal and the refresh.
    {
      weight: 3,
      arbitrary: fc.record({ do: fc.constant("switch" as const), tab: fc.nat(2), under: network, after: fc.nat(3) }),
    },
    {
      weight: 4,
      arbitrary: fc.record({
        do: fc.constant("pass" as const),
        ms: fc.constantFrom(1_000, 5_000, 30_000, TTL_MS - 1, TTL_MS, 3 * TTL_MS),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        do: fc.constantFrom(
          "reload" as const,
          "delete cookie" as const,
          "sign in" as const,
          "unbind" as const,
          "toggle" as const,
        ),
      }),
    },
  );

  test("no refresh of a live session is refused, and the session is bound once the network is up", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
        const world = new DeviceWorld();
        const tabs = [world.openTab(), world.openTab(), world.openTab()];
        for (const one of steps) {
          if ("under" in one) {
            world.network = one.under;
            if ("after" in one) world.switchAfter(one.after);
            else world.sparesRefreshes = one.spares;
            await world.refresh(tabs[one.tab] as Realm);
            world.network = "up";
            world.sparesRefreshes = false;
          } else if ("ms" in one) await world.pass(one.ms);
          else if (one.do === "reload") tabs[0] = world.openTab();
          else if (one.do === "delete cookie") world.deviceCookie = undefined;
          else if (one.do === "sign in") world.signIn();
          else if (one.do === "unbind") delete world.session.key;
          else world.on = !world.on;
        }
        expect(world.wrongRefusals).toBe(0);
        world.network = "up";
        world.on = true;
        for (let time = 0; time < 3; time++) {
          expect(await world.refresh(tabs[0] as Realm)).toBe(200);
          await world.pass(TTL_MS);
        }
        expect(world.session.key).toBeDefined();
      }),
      { numRuns: Number(process.env.SCHEDULES ?? 150) },
    );
  });
});
