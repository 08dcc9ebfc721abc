/** What the kit sends, how it reads responses and times, and what it leaves behind. */
import { describe, expect, test } from "vitest";
import { deadline, onWake, type Realm, sleep } from "../../../src/browser/realm.ts";
import { send } from "../../../src/browser/request.ts";
import { exclusively, openChannel } from "../../../src/browser/tabs.ts";
import { claimsOf, countdown } from "../../../src/browser/token.ts";

const NOW_MS = 1_800_000_000_000;
const URL_OF_REFRESH = "https://app.example/v1/auth/refresh";

/** A browser whose timers never fire by themselves. */
class Page {
  readonly timers = new Map<object, { readonly delayMs: number; readonly callback: () => void }>();
  readonly delaysMs: number[] = [];
  readonly realm: Realm;
  constructor(given: Partial<Realm> = {}) {
    this.realm = {
      performance: { now: () => 0 },
      Date: { now: () => NOW_MS },
      Math: { random: () => 0.5 },
      fetch: async () => new Response(),
      setTimeout: (callback, delayMs) => {
        const timer = {};
        this.delaysMs.push(delayMs);
        this.timers.set(timer, { delayMs, callback });
        return timer;
      },
      clearTimeout: (timer) => this.timers.delete(timer),
      ...given,
    };
  }

  fire(): void {
    for (const { callback } of [...this.timers.values()]) callback();
  }
}

const { signal } = new AbortController();

describe("a request", () => {
  test("carries the cookies, follows no redirect, outlives the page, and has a time limit that leaves no timer", async () => {
    const sent: RequestInit[] = [];
    const page = new Page({
      fetch: async (_, init) => {
        sent.push(init ?? {});
        return Response.json({ data: {} });
      },
    });
    expect(await send(page.realm, URL_OF_REFRESH, signal)).toEqual({});
    const fixed = { credentials: "include", redirect: "error", keepalive: true };
    expect(sent[0]).toMatchObject({ ...fixed, method: "POST" });
    expect(sent[0]?.headers).toBeUndefined();
    await send(page.realm, URL_OF_REFRESH, signal, "t");
    expect(sent[1]).toMatchObject({ ...fixed, method: "DELETE", headers: { authorization: "Bearer t" } });
    expect(page.delaysMs).toEqual([15_000, 15_000]);
    expect(page.timers.size).toBe(0);
  });

  test.each([
    ["30", 30_000],
    [new Date(NOW_MS + 60_000).toUTCString(), 60_000],
    [new Date(NOW_MS - 60_000).toUTCString(), 0],
    ["-5", 0],
    ["soon", 0],
    [undefined, 0],
  ])("that is refused with Retry-After: %s waits for %d ms", async (after, retryAfterMs) => {
    const headers: Record<string, string> = after === undefined ? {} : { "retry-after": after };
    const fetch = async () => Response.json({ error: { code: "E429_RATE_LIMITED" } }, { status: 429, headers });
    expect(await send(new Page({ fetch }).realm, URL_OF_REFRESH, signal)).toEqual({ cause: 429, retryAfterMs });
  });

  test.each([
    ...["null", "{}", '{"error":null}', '{"error":{}}', '{"data":null}', "[]", "<html>", ""],
    ...['{"data":{}}', '{"data":{"accessToken":"t"}}', '{"data":"maintenance"}'],
  ])("that gets 502 with %j leaves the state unknown, with the status as its cause", async (text) => {
    const fetch = async () => new Response(text, { status: 502 });
    expect(await send(new Page({ fetch }).realm, URL_OF_REFRESH, signal)).toEqual({ cause: 502, retryAfterMs: 0 });
  });

  test("takes the token alone from a response", async () => {
    const data = { accessToken: "t", ended: true, cause: 1, retryAfterMs: 1e9 };
    const fetch = async () => Response.json({ data });
    expect(await send(new Page({ fetch }).realm, URL_OF_REFRESH, signal)).toEqual({ accessToken: "t" });
  });
});

describe("waiting", () => {
  test("ends by its time or by its signal, and leaves no timer", async () => {
    const page = new Page();
    const slept = sleep(page.realm, 1_000, signal);
    page.fire();
    await slept;
    expect(page.timers.size).toBe(0);
    const caller = new AbortController();
    const left = sleep(page.realm, 1_000, caller.signal);
    caller.abort();
    await left;
    expect(page.timers.size).toBe(0);
    deadline(page.realm, 1_000, AbortSignal.abort());
    expect(page.delaysMs).toEqual([1_000, 1_000, 0]);
  });

  test.each([
    [0, [5_000, 6_000, 20_000]],
    [0.6, [5_500, 6_600, 22_000]],
  ])(
    "for locks that nobody releases lasts longer by a random part (%d), and the request is sent then",
    async (random, delaysMs) => {
      const page = new Page({
        Math: { random: () => random },
        navigator: {
          locks: {
            request: (_name, options) =>
              new Promise((_, reject) => {
                options.signal.addEventListener("abort", () => reject(options.signal.reason));
                page.fire();
              }),
          },
        },
      });
      expect(await exclusively(page.realm, "lock", signal, async () => "sent")).toBe("sent");
      expect(page.delaysMs.map(Math.round)).toEqual(delaysMs);
      expect(page.timers.size).toBe(0);
    },
  );

  test("for a lock leaves no timer once it is held", async () => {
    const page = new Page({ navigator: { locks: { request: async (_name, _options, callback) => callback() } } });
    expect(await exclusively(page.realm, "lock", signal, async () => "sent")).toBe("sent");
    expect(page.timers.size).toBe(0);
  });
});

test("the kit hears events of the page that do not bubble, until it is disposed", () => {
  const heard: unknown[] = [];
  onWake(new Page({ addEventListener: (type, _, options) => heard.push([type, options]) }).realm, signal, () => {});
  expect(heard).toEqual(
    ["visibilitychange", "resume", "pageshow", "online"].map((type) => [type, { signal, capture: true }]),
  );
});

test("there is no channel where there are no tabs, or where the browser refuses it", () => {
  const document = { visibilityState: "visible", cookie: "" };
  const opened: string[] = [];
  class Channel {
    onmessage = null;
    postMessage() {}
    close() {}
    constructor(name: string) {
      opened.push(name);
    }
  }
  const refuses = class extends Channel {
    constructor(name: string) {
      super(name);
      throw new DOMException("refused", "SecurityError");
    }
  };
  expect(openChannel(new Page({ BroadcastChannel: Channel }).realm, "server", () => {})).toBeUndefined();
  expect(openChannel(new Page({ document }).realm, "frame", () => {})).toBeUndefined();
  expect(openChannel(new Page({ document, BroadcastChannel: refuses }).realm, "refused", () => {})).toBeUndefined();
  expect(openChannel(new Page({ document, BroadcastChannel: Channel }).realm, "tab", () => {})).toBeInstanceOf(Channel);
  expect(opened).toEqual(["refused", "tab"]);
});

test("a token without a life is no token", () => {
  const textOf = (claims: object) => `e30.${Buffer.from(JSON.stringify(claims)).toString("base64url")}.c2ln`;
  expect(claimsOf(textOf({ iat: 1, exp: 2 }))).toEqual({ iat: 1, exp: 2 });
  for (const claims of [{ iat: 1, exp: 1 }, { iat: 2, exp: 1 }, { iat: 1 }, {}])
    expect(claimsOf(textOf(claims))).toBeUndefined();
  for (const text of ["", "a.b.c", textOf([]), undefined]) expect(claimsOf(text)).toBeUndefined();
});

test.each([
  ["stops while the device sleeps", 0, 700],
  ["is set back", 700, -1e9],
  ["agree", 700, 700],
])("of two clocks the one that shows more time counts, when the other %s", (_, monotonicMs, wallMs) => {
  let elapsed = [0, 0] as readonly [number, number];
  const { realm } = new Page({
    performance: { now: () => 5_000 + elapsed[0] },
    Date: { now: () => NOW_MS + elapsed[1] },
  });
  const leftMs = countdown(realm, 1_000);
  elapsed = [monotonicMs, wallMs];
  expect(leftMs()).toBe(300);
});
