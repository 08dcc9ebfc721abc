/** The rules of the browser kit, one by one, in a simulated browser. */
import { describe, expect, test, vi } from "vitest";
import { SessionError } from "../../../src/browser/index.ts";
import { outcomeOf, TOKEN_LIFE_S, World } from "./world.ts";

const world = () => new World(() => 0.5);

describe("access tokens", () => {
  test("nothing happens until the session is used", async () => {
    const here = world();
    const tab = here.open();
    await here.run(600_000);
    expect(here.refreshes).toBe(0);
    expect(tab.holds.size).toBe(0);
    expect(tab.session.snapshot).toEqual({ state: "unknown", claims: undefined });
  });

  test("a hundred tabs make one refresh per token life", async () => {
    const here = world();
    const tabs = Array.from({ length: 100 }, () => here.open());
    const asked = tabs.map((tab) => outcomeOf(tab.session.accessToken()));
    await here.run(10_000);
    expect(new Set(asked.map(({ value }) => value)).size).toBe(1);
    expect(here.refreshes).toBe(1);
    await here.run(10 * TOKEN_LIFE_S * 1000);
    expect(here.refreshes).toBeGreaterThanOrEqual(10);
    expect(here.refreshes).toBeLessThanOrEqual(12);
    expect(tabs.every((tab) => tab.session.snapshot.state === "active")).toBe(true);
  });

  test.each([0, 50, 200, 500])(
    "on a machine that is %d ms late with everything, pages that open take the token of the tabs before",
    async (lagMs) => {
      const here = world();
      here.lagMs = lagMs;
      for (let opened = 0; opened < 5; opened++) {
        const pages = [here.open(), here.open()];
        for (const { session } of pages) session.subscribe(() => {});
        await here.run(10_000);
        for (const { session } of pages) expect(session.snapshot.state).toBe("active");
      }
      expect(here.attempts).toBe(1);
    },
  );

  test("however many tabs there are, refreshes come at points of a token's life that nobody can predict", async () => {
    let seed = 1;
    const here = new World(() => {
      seed = (seed * 16_807) % 2_147_483_647;
      return seed / 2_147_483_647;
    });
    for (let tab = 0; tab < 30; tab++) here.open().session.subscribe(() => {});
    const parts: number[] = [];
    let lastMs = 0;
    while (parts.length < 20) {
      const before = here.refreshes;
      await here.run(1_000);
      if (here.refreshes === before) continue;
      parts.push((here.nowMs - lastMs) / (TOKEN_LIFE_S * 1000));
      lastMs = here.nowMs;
    }
    // The first interval is left out, because it includes the time in which tabs were still being opened.
    const range = parts.slice(1);
    expect(Math.min(...range)).toBeGreaterThan(0.87);
    expect(Math.min(...range)).toBeLessThan(0.9);
    expect(Math.max(...range)).toBeGreaterThan(0.94);
  });

  test("a tab that got a token from another does not refresh when the one before would have been due", async () => {
    const here = world();
    const [first, second] = [here.open(), here.open()];
    second.session.subscribe(() => {});
    const asked = outcomeOf(first.session.accessToken());
    await here.run(200_000);
    here.refusedTokens.add(asked.value ?? "");
    void outcomeOf(first.session.fetch("https://app.example/api"));
    await here.run(100_000);
    expect(here.refreshes).toBe(2);
  });

  test("a token is never returned with less than the wanted validity while the service can be reached", async () => {
    const here = world();
    const tab = here.open();
    tab.visible = false;
    for (let step = 0; step < 100; step++) {
      const asked = outcomeOf(tab.session.accessToken());
      await here.run(2_000);
      const claims = JSON.parse(Buffer.from(asked.value?.split(".")[1] ?? "", "base64url").toString()) as {
        exp: number;
      };
      expect(claims.exp - (1_000 + here.nowMs / 1000)).toBeGreaterThan(7);
      await here.run(11_000);
    }
  });

  test("a lock that a frozen tab holds delays the others, and none of them makes a request of its own", async () => {
    const here = world();
    const [frozen, ...others] = Array.from({ length: 50 }, () => here.open()) as [ReturnType<World["open"]>];
    here.network = "silent";
    void outcomeOf(frozen.session.accessToken());
    await here.run(200);
    here.freeze(frozen);
    here.network = "up";
    const asked = (others as (typeof frozen)[]).map((tab) => outcomeOf(tab.session.accessToken()));
    await here.run(10_000);
    expect(asked.every(({ value }) => value !== undefined)).toBe(true);
    expect(here.refreshes).toBe(1);
  });
});

describe("the end of a session", () => {
  test("a logout ends every tab, frozen ones when they wake", async () => {
    const here = world();
    const tabs = Array.from({ length: 5 }, () => here.open());
    for (const tab of tabs) void outcomeOf(tab.session.accessToken());
    await here.run(5_000);
    const [first, second, ...rest] = tabs as [(typeof tabs)[0], (typeof tabs)[0], ...typeof tabs];
    here.freeze(second);
    const ended = outcomeOf(first.session.end());
    await here.run(1_000);
    expect(ended).toEqual({ done: true, value: undefined });
    for (const tab of [first, ...rest]) expect(tab.session.snapshot.state).toBe("ended");
    expect(second.session.snapshot.state).toBe("active");
    here.resume(second);
    await here.run(2_000);
    expect(second.session.snapshot.state).toBe("ended");
  });

  test.each(["offline", "silent", "html", "unavailable", "limited"] as const)(
    "a network that is %s ends nothing",
    async (network) => {
      const here = world();
      const tab = here.open();
      void outcomeOf(tab.session.accessToken());
      await here.run(1_000);
      here.network = network;
      for (let minute = 0; minute < 20; minute++) {
        void outcomeOf(tab.session.accessToken());
        await here.run(60_000);
      }
      expect(tab.session.snapshot.state).toBe("offline");
      expect(tab.session.snapshot.claims).toMatchObject({ sub: "alice" });
      const asked = outcomeOf(tab.session.accessToken());
      await here.run(60_000);
      expect(asked.error).toMatchObject({ reason: "unavailable" });
      here.network = "up";
      here.dispatch(tab, "online");
      await here.run(130_000);
      expect(tab.session.snapshot.state).toBe("active");
    },
  );

  test("a logout that cannot be sent is reported, and the session goes on", async () => {
    const here = world();
    const tab = here.open();
    void outcomeOf(tab.session.accessToken());
    await here.run(1_000);
    here.network = "offline";
    const ended = outcomeOf(tab.session.end());
    await here.run(1_000);
    expect(ended.error).toBeInstanceOf(SessionError);
    expect(tab.session.snapshot.state).toBe("active");
  });

  test("a logout whose cookie is gone ends the session by its access token", async () => {
    const here = world();
    const [first, second] = [here.open(), here.open()];
    for (const tab of [first, second]) tab.session.subscribe(() => {});
    await here.run(1_000);
    here.forgetCookies();
    const ended = outcomeOf(first.session.end());
    await here.run(1_000);
    expect(ended).toEqual({ done: true, value: undefined });
    expect(here.over.has("s0")).toBe(true);
    for (const tab of [first, second]) expect(tab.session.snapshot.state).toBe("ended");
  });

  test("a logout whose cookie is gone is reported when the access token's form cannot be sent", async () => {
    const here = world();
    const tab = here.open();
    tab.session.subscribe(() => {});
    await here.run(1_000);
    here.forgetCookies();
    here.blocks = ({ method }) => method === "DELETE";
    const ended = outcomeOf(tab.session.end());
    await here.run(1_000);
    expect(ended.error).toMatchObject({ reason: "unavailable" });
    expect(here.over.has("s0")).toBe(false);
    expect(tab.session.snapshot.state).toBe("active");
  });

  test("a logout in another tab while the first token is on its way is not forgotten", async () => {
    const here = world();
    const other = here.open();
    other.session.subscribe(() => {});
    await here.run(1_000);
    other.visible = false;
    await here.run(0.97 * TOKEN_LIFE_S * 1000);
    // The token of the tab that is already open is due for a refresh. The new tab therefore refreshes, and does not use that token.
    const opening = here.open();
    const asked = outcomeOf(opening.session.accessToken());
    here.latencyMs = 1_000;
    while (here.refreshes < 2) await here.run(1);
    here.latencyMs = 20;
    void outcomeOf(other.session.end());
    await here.run(10_000);
    expect(asked.error).toMatchObject({ reason: "ended" });
    expect(opening.session.snapshot.state).toBe("ended");
  });

  test("a sign-in wakes tabs that had ended", async () => {
    const here = world();
    const [first, second] = [here.open(), here.open()];
    for (const tab of [first, second]) void outcomeOf(tab.session.accessToken());
    await here.run(1_000);
    void outcomeOf(first.session.end());
    await here.run(1_000);
    here.signIn();
    const begun = outcomeOf(first.session.begin());
    await here.run(1_000);
    expect(begun).toEqual({ done: true, value: undefined });
    expect(second.session.snapshot).toMatchObject({ state: "active", claims: { sid: "s1" } });
  });

  test("a sign-in beside a logout is followed by every tab", async () => {
    const here = world();
    const [first, second] = [here.open(), here.open()];
    for (const tab of [first, second]) tab.session.subscribe(() => {});
    await here.run(1_000);
    here.latencyMs = 1_000;
    const ended = outcomeOf(first.session.end());
    await here.run(500);
    here.latencyMs = 20;
    here.signIn();
    void outcomeOf(second.session.begin());
    await here.run(5_000);
    expect(ended).toEqual({ done: true, value: undefined });
    const signedIn = { state: "active", claims: { sid: "s1" } };
    for (const tab of [first, second]) expect(tab.session.snapshot).toMatchObject(signedIn);
  });

  test("with the hint cookie an anonymous page makes no request", async () => {
    const here = world();
    here.signedIn = undefined;
    const tab = here.open({ hintCookie: "session_hint" });
    const states: string[] = [];
    tab.session.subscribe(() => states.push(tab.session.snapshot.state));
    await here.run(600_000);
    expect(states).toEqual(["ended"]);
    expect(tab.session.snapshot.state).toBe("ended");
    expect(here.refreshes).toBe(0);
  });
});

describe("clocks", () => {
  test.each([365 * 86_400_000, -365 * 86_400_000])(
    "a wall clock that steps by %d ms costs at most one refresh",
    async (step) => {
      const here = world();
      const tab = here.open();
      void outcomeOf(tab.session.accessToken());
      await here.run(1_000);
      here.wallOffsetMs += step;
      const asked = outcomeOf(tab.session.accessToken());
      await here.run(1_000);
      expect(asked.value).toBeDefined();
      expect(here.refreshes).toBeLessThanOrEqual(2);
      expect(tab.session.snapshot.state).toBe("active");
    },
  );

  test("a sleep of the device is counted", async () => {
    const here = world();
    const tab = here.open();
    void outcomeOf(tab.session.accessToken());
    await here.run(1_000);
    here.sleep(3_600_000);
    const asked = outcomeOf(tab.session.accessToken());
    await here.run(1_000);
    expect(here.refreshes).toBe(2);
    expect(asked.value).toBeDefined();
  });
});

describe("requests of the application", () => {
  test("a refused token is replaced once, and the request repeated once", async () => {
    const here = world();
    const tab = here.open();
    const first = outcomeOf(tab.session.accessToken());
    await here.run(1_000);
    here.refusedTokens.add(first.value ?? "");
    const response = outcomeOf(tab.session.fetch("https://app.example/api", { method: "POST", body: "x" }));
    await here.run(1_000);
    expect(response.value?.status).toBe(200);
    expect(here.refreshes).toBe(2);
  });

  test("a service that refuses every token causes one refresh, not one per request", async () => {
    const here = world();
    const tab = here.open();
    here.accepts = () => false;
    for (let call = 0; call < 20; call++) {
      const response = outcomeOf(tab.session.fetch("https://app.example/api"));
      await here.run(1_000);
      expect(response.value?.status).toBe(401);
    }
    expect(here.refreshes).toBe(2);
  });

  test("after each change of the session the token is replaced once, and all tabs have the new claims", async () => {
    const here = world();
    const [tab, other] = [here.open(), here.open()];
    for (const { session } of [tab, other]) void outcomeOf(session.accessToken());
    await here.run(1_000);
    for (let change = 1; change <= 5; change++) {
      here.version = change;
      const response = outcomeOf(tab.session.fetch("https://app.example/api"));
      await here.run(1_000);
      expect(response.value?.status).toBe(200);
      for (const { session } of [tab, other]) expect(session.snapshot.claims).toMatchObject({ sv: change });
      const again = outcomeOf(other.session.fetch("https://app.example/api"));
      await here.run(1_000);
      expect(again.value?.status).toBe(200);
      expect(here.refreshes).toBe(1 + change);
    }
    expect(tab.session.snapshot.state).toBe("active");
    here.accepts = () => false;
    for (let call = 0; call < 5; call++) {
      void outcomeOf(tab.session.fetch("https://app.example/api"));
      await here.run(1_000);
    }
    expect(here.refreshes).toBe(7);
  });

  test("the token is not sent to an origin that nobody named", async () => {
    const here = world();
    const refused = outcomeOf(here.open().session.fetch("https://elsewhere.example/"));
    await here.run(1_000);
    expect(refused.error).toBeInstanceOf(TypeError);
    expect(here.refreshes).toBe(0);
  });

  test.each(["init", "request"])("a caller that gives up does not wait for a refresh: signal of the %s", async (of) => {
    const here = world();
    const tab = here.open();
    here.latencyMs = 5_000;
    const caller = new AbortController();
    const { signal } = caller;
    const url = "https://app.example/api";
    const response = outcomeOf(
      of === "init" ? tab.session.fetch(url, { signal }) : tab.session.fetch(new Request(url, { signal })),
    );
    await here.run(1_000);
    expect(response.done).toBe(false);
    caller.abort(new Error("left"));
    await here.run(0);
    expect(response.error).toEqual(new Error("left"));
    // A refresh is shared by all callers in a tab, so it continues when one caller aborts its request.
    const other = outcomeOf(tab.session.accessToken());
    await here.run(5_000);
    expect(other.value).toBeDefined();
    expect(here.attempts).toBe(1);
  });

  test("a caller that has given up before the call causes no request", async () => {
    const here = world();
    const response = outcomeOf(
      here.open().session.fetch("https://app.example/api", { signal: AbortSignal.abort(new Error("left")) }),
    );
    await here.run(1_000);
    expect(response.error).toEqual(new Error("left"));
    expect(here.attempts).toBe(0);
  });

  test("a caller that gives up while a refused token is replaced does not wait on", async () => {
    const here = world();
    const tab = here.open();
    const first = outcomeOf(tab.session.accessToken());
    await here.run(1_000);
    here.refusedTokens.add(first.value ?? "");
    here.blocks = ({ url }) => url.endsWith("/refresh");
    const caller = new AbortController();
    const response = outcomeOf(tab.session.fetch("https://app.example/api", { signal: caller.signal }));
    await here.run(50);
    caller.abort(new Error("left"));
    await here.run(0);
    expect(response.error).toEqual(new Error("left"));
  });

  /** Sends a request to an API that refuses the first token. Returns the outcome of the request, which the kit repeats with a new token. */
  async function sendRefused(send: (fetch: typeof globalThis.fetch) => Promise<Response>) {
    const here = world();
    const tab = here.open();
    const first = outcomeOf(tab.session.accessToken());
    await here.run(1_000);
    here.refusedTokens.add(first.value ?? "");
    const response = outcomeOf(send(tab.session.fetch));
    await here.run(2_000);
    return { here, status: response.value?.status, second: outcomeOf(tab.session.accessToken()), first };
  }
  const URL_OF_API = "https://app.example/api";
  const form = new FormData();
  form.set("name", "value");

  test.each<[string, NonNullable<RequestInit["body"]>]>([
    ["text", "x"],
    ["bytes", new Uint8Array(100_000)],
    ["a form", form],
    ["parameters", new URLSearchParams({ a: "b" })],
    ["a file", new Blob(["x"])],
  ])("a body that is %s is sent again as it is, and not copied", async (_, body) => {
    const clone = vi.spyOn(Request.prototype, "clone");
    const { here, status } = await sendRefused((fetch) => fetch(URL_OF_API, { method: "POST", body }));
    expect(status).toBe(200);
    expect(clone).not.toHaveBeenCalled();
    clone.mockRestore();
    const [first, second] = here.bodies.slice(-2);
    expect(second?.size).toBeGreaterThan(0);
    // Each time the form is sent, it gets another boundary of the same length, so only the sizes can be compared.
    expect(second?.size).toBe(first?.size);
    expect(second?.type.split("boundary=")[0]).toBe(first?.type.split("boundary=")[0]);
  });

  test("the body of a Request is sent again", async () => {
    const { here, status } = await sendRefused((fetch) =>
      fetch(new Request(URL_OF_API, { method: "POST", body: "text" })),
    );
    expect(status).toBe(200);
    expect(here.bodies.slice(-2).map(({ size }) => size)).toEqual([4, 4]);
  });

  test("a body of init replaces that of a Request, both times", async () => {
    const { here, status } = await sendRefused((fetch) =>
      fetch(new Request(URL_OF_API, { method: "POST", body: "text" }), { body: "longer text" }),
    );
    expect(status).toBe(200);
    expect(here.bodies.slice(-2).map(({ size }) => size)).toEqual([11, 11]);
  });

  test("a stream is sent once, and the token that was refused is replaced for the next call", async () => {
    const body = new Blob(["streamed"]).stream();
    const { here, status, first, second } = await sendRefused((fetch) =>
      fetch(URL_OF_API, { method: "POST", body, duplex: "half" }),
    );
    expect(status).toBe(401);
    expect(here.bodies).toHaveLength(1);
    await here.run(0);
    expect(second.value).toBeDefined();
    expect(second.value).not.toBe(first.value);
  });

  test("an interceptor repeats a unary call that was refused, and no stream", async () => {
    const here = world();
    const { session } = here.open();
    const refusals = [true, false, true];
    const { signal } = new AbortController();
    const call = (stream: boolean) => ({ url: "/sessions.v1.Orders/List", stream, header: new Headers(), signal });
    const next = async (request: ReturnType<typeof call>) => {
      if (refusals.shift()) throw Object.assign(new Error("refused"), { code: 16 });
      return request.header.get("authorization");
    };
    const unary = outcomeOf(session.interceptor(next)(call(false)));
    await here.run(1_000);
    expect(unary.value).toMatch(/^Bearer /);
    const stream = outcomeOf(session.interceptor(next)(call(true)));
    await here.run(1_000);
    expect(stream.error).toMatchObject({ code: 16 });
  });
});

test("after dispose nothing is left, and every call says so", async () => {
  const here = world();
  const tab = here.open();
  const stop = tab.session.subscribe(() => {});
  await here.run(5_000);
  here.network = "silent";
  here.sleep(TOKEN_LIFE_S * 1000);
  const pending = outcomeOf(tab.session.accessToken());
  await here.run(500);
  tab.session.dispose();
  await here.run(0);
  expect(pending.error).toMatchObject({ reason: "disposed" });
  await expect(tab.session.accessToken()).rejects.toMatchObject({ reason: "disposed" });
  expect([...tab.holds]).toEqual([]);
  expect(tab.listeners.size).toBe(0);
  stop();
});

describe("what tabs say to each other", () => {
  test("a service that refuses every token causes two refreshes in all tabs together, not in each", async () => {
    const here = world();
    const tabs = Array.from({ length: 5 }, () => here.open());
    here.accepts = () => false;
    for (let round = 0; round < 5; round++) {
      for (const tab of tabs) void outcomeOf(tab.session.fetch("https://app.example/api"));
      await here.run(2_000);
    }
    expect(here.refreshes).toBe(2);
  });

  test("a logout that a frozen tab reports late does not end the session of a later sign-in", async () => {
    const here = world();
    const frozen = here.open();
    void outcomeOf(frozen.session.accessToken());
    void outcomeOf(frozen.session.end());
    await here.run(0);
    here.freeze(frozen);
    await here.run(60_000);
    here.signIn();
    const fresh = here.open();
    fresh.session.subscribe(() => {});
    here.resume(frozen);
    await here.run(5_000);
    expect(fresh.session.snapshot).toMatchObject({ state: "active", claims: { sid: "s1" } });
  });
});

describe("whose token it is", () => {
  const HINT = { hintCookie: "session_hint" };

  test("a tab in which another user signed in by a page load does not take the token of the user before", async () => {
    const here = world();
    const before = here.open(HINT);
    before.session.subscribe(() => {});
    await here.run(1_000);
    here.signInByPage();
    const after = here.open(HINT);
    const asked = outcomeOf(after.session.accessToken());
    await here.run(1_000);
    expect(asked.done).toBe(true);
    expect(after.session.snapshot).toMatchObject({ state: "active", claims: { sid: "s1" } });
    // The tab that was already open has been notified of the new session.
    expect(before.session.snapshot).toMatchObject({ state: "active", claims: { sid: "s1" } });
  });

  test("without the hint cookie, begin() on the page after the login does the same", async () => {
    const here = world();
    const before = here.open();
    before.session.subscribe(() => {});
    await here.run(1_000);
    here.signInByPage();
    const after = here.open();
    void outcomeOf(after.session.begin());
    await here.run(1_000);
    for (const tab of [before, after]) expect(tab.session.snapshot).toMatchObject({ claims: { sid: "s1" } });
  });

  test.each([
    ["signed out", "ended", undefined],
    ["signed in as another user", "active", "s1"],
  ] as const)("a tab that is seen again while its token is fresh notices that a page %s", async (what, state, sid) => {
    const here = world();
    const tab = here.open(HINT);
    tab.session.subscribe(() => {});
    await here.run(1_000);
    if (what === "signed out") here.revoke();
    else here.signInByPage();
    here.dispatch(tab, "visibilitychange");
    await here.run(2_000);
    expect(tab.session.snapshot.state).toBe(state);
    expect(tab.session.snapshot.claims?.sid).toBe(sid);
  });

  test.each([
    ["continues", "active", 1],
    ["refuses", "ended", 2],
  ])(
    "a hint cookie that an application sets for a session that the service then %s lets the tabs ask for it",
    async (what, state, refreshes) => {
      const here = world();
      if (what === "refuses") here.revoke();
      here.oldHint = "migrate";
      const tabs = [here.open(HINT), here.open(HINT)];
      for (const tab of tabs) tab.session.subscribe(() => {});
      await here.run(5_000);
      expect(tabs.map((tab) => tab.session.snapshot.state)).toEqual([state, state]);
      expect(here.refreshes).toBe(refreshes);
    },
  );

  test("a frame that may not read cookies asks the service", async () => {
    const here = world();
    here.sandboxed = true;
    const asked = outcomeOf(here.open(HINT).session.accessToken());
    await here.run(1_000);
    expect(asked.value).toBeDefined();
  });

  test.each(["logout page", "refused refresh"])("a %s without a token ends the tabs that hold one", async (what) => {
    const here = world();
    const tabs = [here.open(), here.open(), here.open()];
    for (const tab of tabs) tab.session.subscribe(() => {});
    await here.run(1_000);
    const other = here.open();
    for (const tab of tabs) tab.visible = false;
    if (what === "refused refresh") {
      // At this time the token is due for a refresh. The other tabs no longer send such a token to the new tab, which therefore refreshes.
      await here.run(0.97 * TOKEN_LIFE_S * 1000);
      here.revoke();
      void outcomeOf(other.session.accessToken());
    } else void outcomeOf(other.session.end());
    await here.run(10_000);
    expect(tabs.map((tab) => tab.session.snapshot.state)).toEqual(["ended", "ended", "ended"]);
    expect(here.refreshes).toBeLessThanOrEqual(3);
  });
});

describe("a tab whose session has ended", () => {
  test.each(["hidden", "frozen", "in the back/forward cache"])(
    "and that was %s meanwhile, sees by the hint cookie that somebody has signed in on another page",
    async (how) => {
      const here = world();
      here.dropping = true;
      const tab = here.open({ hintCookie: "session_hint" });
      tab.session.subscribe(() => {});
      await here.run(1_000);
      void outcomeOf(tab.session.end());
      await here.run(1_000);
      tab.visible = false;
      if (how !== "hidden") here.freeze(tab, how !== "frozen");
      here.signInByPage();
      here.resume(tab);
      await here.run(5_000);
      expect(tab.session.snapshot).toMatchObject({ state: "active", claims: { sid: "s1" } });
      expect(here.attempts).toBe(2);
    },
  );

  test("asks once, not each time it is seen, while the hint cookie is that of the session that has ended", async () => {
    const here = world();
    const tab = here.open({ hintCookie: "session_hint" });
    here.planted = ["session_hint=s0"];
    here.revoke();
    tab.session.subscribe(() => {});
    await here.run(5_000);
    for (let time = 0; time < 5; time++) {
      here.resume(tab);
      await here.run(5_000);
    }
    expect(tab.session.snapshot.state).toBe("ended");
    expect(here.attempts).toBe(1);
  });
});

describe("waking and outages", () => {
  const HINT = { hintCookie: "session_hint" };

  test("a page from the back/forward cache with a fresh token and the cookie makes no request", async () => {
    const here = world();
    const tab = here.open(HINT);
    tab.session.subscribe(() => {});
    await here.run(1_000);
    for (let time = 0; time < 5; time++) {
      here.freeze(tab, true);
      await here.run(10_000);
      here.resume(tab);
      await here.run(2_000);
      expect(tab.session.snapshot.state).toBe("active");
    }
    expect(here.attempts).toBe(1);
  });

  test.each([
    ["with the cookie", HINT, 1],
    // A page from the back/forward cache may have missed messages. Without the hint cookie, it has to ask the service whether its session
    // is still live.
    ["without it", {}, 2],
  ])("a page from the back/forward cache sees a logout that it missed, %s", async (_, options, attempts) => {
    const here = world();
    const [cached, other] = [here.open(options), here.open(options)];
    for (const tab of [cached, other]) tab.session.subscribe(() => {});
    await here.run(1_000);
    here.freeze(cached, true);
    void outcomeOf(other.session.end());
    await here.run(1_000);
    here.resume(cached);
    await here.run(2_000);
    expect(cached.session.snapshot.state).toBe("ended");
    expect(here.attempts).toBe(attempts);
  });

  test("a page from the back/forward cache is renewed when its token is due", async () => {
    const here = world();
    const tab = here.open(HINT);
    tab.session.subscribe(() => {});
    await here.run(1_000);
    here.freeze(tab, true);
    await here.run(2 * TOKEN_LIFE_S * 1000);
    here.resume(tab);
    await here.run(2_000);
    expect(here.attempts).toBe(2);
    expect(tab.session.snapshot.state).toBe("active");
  });

  test("a logout that a frozen tab missed is seen whatever else wakes it", async () => {
    const here = world();
    here.dropping = true;
    const [frozen, other] = [here.open(), here.open()];
    for (const tab of [frozen, other]) tab.session.subscribe(() => {});
    await here.run(1_000);
    here.freeze(frozen);
    void outcomeOf(other.session.end());
    await here.run(1_000);
    here.resume(frozen);
    here.dispatch(frozen, "online");
    await here.run(2_000);
    expect(frozen.session.snapshot.state).toBe("ended");
  });

  test("a look after a wake that fails is repeated, and the token stays in use", async () => {
    const here = world();
    here.dropping = true;
    const tab = here.open();
    tab.session.subscribe(() => {});
    await here.run(1_000);
    here.freeze(tab);
    here.revoke();
    here.network = "offline";
    here.resume(tab);
    await here.run(5_000);
    expect(tab.session.snapshot.state).toBe("offline");
    const asked = outcomeOf(tab.session.accessToken());
    await here.run(0);
    expect(asked.value).toBeDefined();
    here.network = "up";
    // The token is not due for a refresh within this minute. So the page can learn of the revocation only by repeating its failed check of
    // the session.
    await here.run(60_000);
    expect(tab.session.snapshot.state).toBe("ended");
  });

  test("tabs that woke do not confirm each other", async () => {
    const here = world();
    here.dropping = true;
    const tabs = [here.open(), here.open()];
    for (const tab of tabs) tab.session.subscribe(() => {});
    await here.run(1_000);
    for (const tab of tabs) here.freeze(tab);
    here.revoke();
    for (const tab of tabs) here.resume(tab);
    await here.run(5_000);
    expect(tabs.map((tab) => tab.session.snapshot.state)).toEqual(["ended", "ended"]);
  });

  test("a failure in one tab leaves a tab with a fresh token active, and one that ended ended", async () => {
    const here = world();
    const [active, failing] = [here.open(), here.open()];
    active.session.subscribe(() => {});
    const asked = outcomeOf(failing.session.accessToken());
    await here.run(1_000);
    here.refusedTokens.add(asked.value ?? "");
    void outcomeOf(failing.session.fetch("https://app.example/api"));
    // The API has refused the token, and the tab has not sent its refresh yet.
    await here.run(100);
    here.network = "offline";
    await here.run(2_000);
    expect(failing.session.snapshot.state).toBe("offline");
    expect(active.session.snapshot.state).toBe("active");
    here.network = "up";
    await here.run(60_000);
    void outcomeOf(active.session.end());
    await here.run(1_000);
    here.network = "offline";
    void outcomeOf(here.open().session.accessToken());
    await here.run(5_000);
    expect(active.session.snapshot.state).toBe("ended");
  });

  test("a tab that ended and wakes without a network backs off", async () => {
    const here = world();
    const tab = here.open();
    void outcomeOf(tab.session.end());
    await here.run(1_000);
    here.freeze(tab);
    here.network = "offline";
    here.resume(tab);
    await here.run(300_000);
    expect(tab.session.snapshot.state).toBe("ended");
    expect(here.attempts).toBeLessThan(20);
  });

  test("a sign-in whose tab goes away at once is followed by the others", async () => {
    const here = world();
    const [leaving, staying] = [here.open(), here.open()];
    for (const tab of [leaving, staying]) tab.session.subscribe(() => {});
    await here.run(1_000);
    here.signIn();
    void outcomeOf(leaving.session.begin());
    await here.run(1);
    here.kill(leaving);
    await here.run(2_000);
    expect(staying.session.snapshot).toMatchObject({ state: "active", claims: { sid: "s1" } });
  });

  test("while offline, a tab tries again by its backoff and at once when the network is back", async () => {
    const here = world();
    const tab = here.open();
    tab.session.subscribe(() => {});
    await here.run(1_000);
    here.network = "offline";
    here.sleep(TOKEN_LIFE_S * 1000);
    here.dispatch(tab, "visibilitychange");
    await here.run(60_000);
    expect(tab.session.snapshot.state).toBe("offline");
    here.network = "up";
    here.dispatch(tab, "online");
    await here.run(1_000);
    expect(tab.session.snapshot.state).toBe("active");
  });

  test("a hidden tab whose first request failed waits until it is seen", async () => {
    const here = world();
    const tab = here.open();
    tab.visible = false;
    here.network = "offline";
    tab.session.subscribe(() => {});
    await here.run(600_000);
    expect(here.attempts).toBe(1);
    here.network = "up";
    tab.visible = true;
    here.dispatch(tab, "visibilitychange");
    await here.run(60_000);
    expect(tab.session.snapshot.state).toBe("active");
  });

  test("a service that hangs gets a few requests of fifty tabs, not fifty", async () => {
    let seed = 1;
    const here = new World(() => {
      seed = (seed * 16_807) % 2_147_483_647;
      return seed / 2_147_483_647;
    });
    const tabs = Array.from({ length: 50 }, () => here.open());
    here.network = "silent";
    for (const tab of tabs) void outcomeOf(tab.session.accessToken());
    await here.run(30_000);
    expect(here.attempts).toBeLessThanOrEqual(6);
  });

  test.each([
    ["2592000", 900_000],
    ["-60", 60_000],
    [new Date(1_800_000_000_000 + 60_000).toUTCString(), 120_000],
  ])("Retry-After: %s neither stops nor floods", async (retryAfter, withinMs) => {
    const here = world();
    here.retryAfter = retryAfter;
    here.network = "limited";
    const tab = here.open();
    tab.session.subscribe(() => {});
    await here.run(30_000);
    expect(here.attempts).toBeLessThan(10);
    if (retryAfter.includes("GMT")) expect(here.attempts).toBe(1);
    here.network = "up";
    await here.run(withinMs);
    expect(tab.session.snapshot.state).toBe("active");
  });
});

test("a message of another version, or none of the kit's, changes nothing", async () => {
  const here = world();
  const tab = here.open();
  tab.session.subscribe(() => {});
  await here.run(1_000);
  const { sid } = tab.session.snapshot.claims ?? {};
  for (const channel of here.channels) {
    for (const data of [null, undefined, 1, { type: "x", sid }, { sid }]) channel.onmessage?.({ data });
  }
  await here.run(2_000);
  expect(tab.session.snapshot.state).toBe("active");
  expect(here.refreshes).toBe(1);
});

test("no listener runs while its tab holds a lock", async () => {
  const here = world();
  const tab = here.open();
  const locked: boolean[] = [];
  tab.session.subscribe(() => locked.push([...tab.holds].some((held) => "release" in (held as object))));
  await here.run(2_000);
  expect(locked).toEqual([false]);
});

test("subscribing after dispose does nothing, and a function that subscribed twice is removed once", async () => {
  const here = world();
  const tab = here.open();
  let calls = 0;
  const listener = () => calls++;
  const stop = tab.session.subscribe(listener);
  tab.session.subscribe(listener);
  stop();
  await here.run(1_000);
  expect(calls).toBe(1);
  tab.session.dispose();
  expect(() => tab.session.subscribe(listener)()).not.toThrow();
});
