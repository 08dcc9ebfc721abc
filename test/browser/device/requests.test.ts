/** The requests of device binding: how they are sent, how often, and by which key. */
import { describe, expect, test } from "vitest";
import { type DeviceRealm, withDeviceKey } from "../../../src/browser/device/index.ts";
import { createDeviceKeys } from "../../../src/browser/device/keys.ts";
import { createDeviceRequests, quoted } from "../../../src/browser/device/requests.ts";
import type { Realm } from "../../../src/browser/realm.ts";
import { createMemoryStorage } from "./memory-storage.ts";
import { DeviceWorld, TTL_MS } from "./world.ts";

const HEAD_START_MS = 5_000;
const RENEWAL = "/v1/auth/device/refresh";
const REGISTRATION = "/v1/auth/device";
const REFRESH = "/v1/auth/refresh";
const BASE = "https://app.example";

/** Creates a world in which sessions of `users` have been bound one after the other. The last one is signed in. */
async function bound(users = 1): Promise<{ world: DeviceWorld; tab: Realm; sessions: DeviceWorld["session"][] }> {
  const world = new DeviceWorld();
  const tab = world.openTab();
  const sessions = [world.session];
  for (let user = 0; user < users; user++) {
    if (user > 0) {
      world.signIn();
      sessions.push(world.session);
    }
    expect(await world.refresh(tab)).toBe(200);
    await world.pass(HEAD_START_MS);
    expect(world.session.key).toBeDefined();
    await world.pass(TTL_MS);
  }
  world.requests.length = 0;
  world.sent.length = 0;
  return { world, tab, sessions };
}

/** A browser whose service responds as `respond` says, and whose timers are run by the test. */
function page(respond: (path: string) => Response) {
  const calls: unknown[] = [];
  const timers: (() => void)[] = [];
  const realm = {
    fetch: async (url: string | Request) => {
      calls.push(typeof url === "string" ? url.slice(BASE.length) : url);
      return respond(typeof url === "string" ? url.slice(BASE.length) : url.url);
    },
    setTimeout: (callback: () => void) => timers.push(callback),
    clearTimeout: () => {},
    ...{ performance, Date, Math, crypto },
    indexedDB: createMemoryStorage().indexedDB,
  } as unknown as DeviceRealm;
  return { calls, timers, realm };
}

describe("a registration", () => {
  test("is sent once for several refreshes in its head start", async () => {
    const world = new DeviceWorld();
    const tab = world.openTab();
    await Promise.all([world.refresh(tab), world.refresh(tab)]);
    await world.refresh(tab);
    await world.pass(HEAD_START_MS);
    expect(world.requests).toEqual([REFRESH, REFRESH, REFRESH, RENEWAL, REGISTRATION]);
  });

  test("outlives the page, follows no redirect, has a time limit, and closes the storage", async () => {
    const world = new DeviceWorld();
    await world.refresh(world.openTab());
    await world.pass(HEAD_START_MS);
    const [, ...sent] = world.sent;
    expect(sent).toHaveLength(2);
    for (const init of sent) {
      expect(init).toMatchObject({ method: "POST", credentials: "include", keepalive: true, redirect: "error" });
      expect(init.signal?.aborted).toBe(false);
    }
    expect(world.storage.connections).toBe(0);
  });

  test("alone shows the public key; a renewal does not", async () => {
    const world = new DeviceWorld();
    const tab = world.openTab();
    await world.refresh(tab);
    await world.pass(HEAD_START_MS);
    await world.pass(TTL_MS);
    await world.refresh(tab);
    const headers = world.sent.map(({ headers }) => {
      const proof = new Headers(headers).get("secure-session-response");
      return proof && Object.keys(JSON.parse(Buffer.from(proof.split(".")[0] as string, "base64url").toString()));
    });
    expect(world.requests).toEqual([REFRESH, RENEWAL, REGISTRATION, RENEWAL, REFRESH]);
    expect(headers).toEqual([null, null, ["alg", "typ", "jwk"], ["alg", "typ"], null]);
  });

  test("is repeated by a tab whose head start ends after that of another one, with the same key", async () => {
    const world = new DeviceWorld();
    const [first, second] = [world.openTab(), world.openTab()];
    await world.refresh(first);
    await world.pass(1_000);
    await world.refresh(second);
    await world.pass(HEAD_START_MS - 1_000);
    const { key } = world.session;
    expect(key).toBeDefined();
    world.requests.length = 0;
    await world.pass(1_000);
    expect(world.requests).toEqual([RENEWAL, REGISTRATION]);
    expect(world.session.key).toEqual(key);
    expect(await world.refresh(second)).toBe(200);
    expect(world.requests).toEqual([RENEWAL, REGISTRATION, REFRESH]);
  });

  test("is not sent for a session that the browser has bound itself, although another one has a key here", async () => {
    const { world, tab, sessions } = await bound();
    const other = { ...(sessions[0] as DeviceWorld["session"]) };
    world.signIn();
    await world.refresh(tab);
    world.session.key = other.key as never;
    world.requests.length = 0;
    await world.pass(HEAD_START_MS);
    expect(world.requests).toEqual([RENEWAL]);
  });

  test("that the service refuses does not count as a renewal", async () => {
    const world = new DeviceWorld();
    const tab = world.openTab();
    await world.refresh(tab);
    // By now the challenge that was offered is too old.
    await world.pass(3 * TTL_MS);
    expect(world.session.key).toBeUndefined();
    world.requests.length = 0;
    expect(await world.refresh(tab)).toBe(200);
    expect(world.requests).toEqual([RENEWAL, REFRESH]);
  });

  test.each([
    ["names no session", { data: { accessToken: `e30.${btoa(JSON.stringify({ iat: 1, exp: 2 }))}.x` } }],
    ["has no token", { data: { accessToken: "x" } }],
    ["is of another service", { ok: true }],
  ])("is not sent after a response that %s", async (_, body) => {
    const headers = { "secure-session-registration": '(ES256);path="/v1/auth/device";challenge="c"' };
    const { calls, timers, realm } = page(() => Response.json(body, { headers }));
    const response = await withDeviceKey(realm).fetch(BASE + REFRESH);
    expect(await response.json()).toEqual(body);
    expect([calls, timers]).toEqual([[REFRESH], []]);
  });
});

describe("a refresh", () => {
  test("that is refused is not repeated in a browser without a key", async () => {
    const { world } = await bound();
    world.storage.clear();
    world.deviceCookie = undefined;
    const response = await world.openTab().fetch(BASE + REFRESH, { method: "POST" });
    expect(response.status).toBe(401);
    expect(world.requests).toEqual([REFRESH]);
  });

  test("during an outage soon after a renewal is repeated after another renewal", async () => {
    const { world, tab } = await bound();
    expect(await world.refresh(tab)).toBe(200);
    await world.pass(30_000);
    world.requests.length = 0;
    world.network = "outage";
    world.switchAfter(1);
    expect(await world.refresh(tab)).toBe(200);
    expect(world.requests).toEqual([RENEWAL, REFRESH]);
  });

  test.each([0, 1, 2, 3])(
    "renews by the key of the session that the cookies belong to: the %d. of four",
    async (index) => {
      const { world, tab, sessions } = await bound(4);
      world.session = sessions[index] as DeviceWorld["session"];
      expect(await world.refresh(tab)).toBe(200);
      expect(world.requests.at(-1)).toBe(REFRESH);
    },
  );

  test("keeps the keys of four sessions, the newest ones", async () => {
    const { world, sessions } = await bound(6);
    const keys = createDeviceKeys({ indexedDB: world.storage.indexedDB, crypto }, `session-device/1:${BASE}`);
    expect((await keys.all()).map(({ sid }) => sid)).toEqual(sessions.slice(-4).map(({ sid }) => sid));
    expect(world.storage.connections).toBe(0);
  });
});

describe("a renewal", () => {
  /** Renews with one key at a service that responds as `respond` says. */
  async function renewed(respond: () => Response) {
    const { calls, realm } = page(respond);
    const keys = createDeviceKeys(realm as Required<DeviceRealm>, "keys");
    await keys.obtain("s1");
    const requests = createDeviceRequests(realm, crypto, keys, BASE);
    const outcome = await requests.renew({}, await keys.all());
    return { calls, outcome, requests };
  }
  const challenge = { "secure-session-challenge": '"c";id="s1"' };

  test("is sent three times at most to a service that asks for another proof each time", async () => {
    const { calls, outcome, requests } = await renewed(() => new Response(null, { status: 403, headers: challenge }));
    expect(calls).toEqual([RENEWAL, RENEWAL, RENEWAL]);
    expect(outcome).toBeUndefined();
    expect(requests.isRenewed()).toBe(false);
  });

  test.each([401, 403, 404])("that gets %i without a challenge lets the refresh continue", async (status) => {
    const { calls, outcome } = await renewed(() => new Response(null, { status }));
    expect([calls, outcome]).toEqual([[RENEWAL], undefined]);
  });

  test.each(["null", "{}", "<html>", '{"continue":true}'])(
    "that gets %s instead of a response of the service hands it on",
    async (text) => {
      const { outcome, requests } = await renewed(() => new Response(text));
      expect(outcome?.status).toBe(200);
      expect(requests.isRenewed()).toBe(false);
    },
  );

  test("is over for a session without a key, and for one whose key is accepted", async () => {
    for (const response of [Response.json({ continue: false }), new Response(null, { headers: challenge })]) {
      const { outcome, requests } = await renewed(() => response);
      expect([outcome, requests.isRenewed()]).toEqual([undefined, true]);
    }
  });
});

test("a Request is passed on as it is", async () => {
  const { calls, realm } = page(() => new Response());
  const request = new Request(BASE + REFRESH);
  await withDeviceKey(realm).fetch(request);
  expect(calls).toEqual([request]);
});

test("a text without quotes has no quoted part", () => {
  expect(quoted('"c";id="s1"')).toBe("c");
  expect(quoted('"c";id="s1"', ";id=")).toBe("s1");
  for (const header of [null, "", "c", "c;id=s1"]) expect(quoted(header)).toBeUndefined();
});
