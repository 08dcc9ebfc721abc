/** When the kit asks the other tabs, when it asks the service, and when it waits, in a simulated browser. */
import { getEventListeners } from "node:events";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { outcomeOf, TOKEN_LIFE_S, World } from "./world.ts";

const LIFE_MS = TOKEN_LIFE_S * 1000;
const NAME = "session/1:https://app.example";
const API = "https://app.example/api";
const world = () => new World(() => 0.5);

/** Opens a hidden tab that has a token, and no timer of its own for the next one. Returns when the token was issued, in virtual time. */
async function hiddenTab(here: World, options: Parameters<World["open"]>[0] = {}) {
  const tab = here.open(options);
  tab.visible = false;
  const first = outcomeOf(tab.session.accessToken());
  await here.run(5_000);
  return { tab, token: first.value as string, issuedAtMs: (here.refreshedAtMs[0] as number) - 20 };
}

/** Records what is said to all tabs, or to the channel of another name. */
function listenTo(here: World, name = NAME) {
  const heard: { readonly type: string }[] = [];
  const onmessage = ({ data }: { readonly data: { readonly type: string } }) => heard.push(data);
  here.channels.add({ name, tab: {}, onmessage } as never);
  return heard;
}

/** Counts the requests to the application's API, and lets `blocks` decide which ones are lost. */
function countCalls(here: World, blocks: (request: Request) => boolean = () => false) {
  const calls: string[] = [];
  here.blocks = (request) => {
    calls.push(`${request.method} ${new URL(request.url).pathname}`);
    return blocks(request);
  };
  return calls;
}

describe("a token that is asked for", () => {
  test("is used to its last moment while the service cannot be reached, and not in that moment", async () => {
    const here = world();
    const { tab, token, issuedAtMs } = await hiddenTab(here);
    here.network = "limited";
    here.retryAfter = "600";
    await here.run(issuedAtMs + LIFE_MS - 20_000 - here.nowMs);
    void outcomeOf(tab.session.accessToken());
    await here.run(issuedAtMs + LIFE_MS - 1 - here.nowMs);
    const last = outcomeOf(tab.session.accessToken());
    await here.run(0);
    expect(last.value).toBe(token);
    await here.run(1);
    const late = outcomeOf(tab.session.accessToken());
    await here.run(0);
    expect(late.error).toMatchObject({ reason: "unavailable" });
    expect(here.attempts).toBe(2);
  });

  test("is valid for as long as the application wants", async () => {
    const here = world();
    const { tab, token } = await hiddenTab(here, { minValidityMs: 60_000 });
    await here.run(LIFE_MS - 50_000);
    const asked = outcomeOf(tab.session.accessToken());
    await here.run(2_000);
    expect(asked.value).toBeDefined();
    expect(asked.value).not.toBe(token);
    expect(here.attempts).toBe(2);
  });

  test("is used for half of its life where the application wants more than any token has", async () => {
    const here = world();
    const { tab, token } = await hiddenTab(here, { minValidityMs: 2 * LIFE_MS });
    await here.run(LIFE_MS / 2 - 10_000);
    const early = outcomeOf(tab.session.accessToken());
    await here.run(0);
    expect(early.value).toBe(token);
    expect(here.attempts).toBe(1);
    await here.run(10_000);
    const later = outcomeOf(tab.session.accessToken());
    await here.run(2_000);
    expect(later.value).not.toBe(token);
    expect(here.attempts).toBe(2);
  });

  test("is returned at once when it is due, and renewed beside that", async () => {
    const here = world();
    const { tab, token, issuedAtMs } = await hiddenTab(here);
    // A token is due when 8 % of its life are left, in this world.
    await here.run(issuedAtMs + 0.92 * LIFE_MS - 1 - here.nowMs);
    void outcomeOf(tab.session.accessToken());
    await here.run(1);
    expect(here.attempts).toBe(1);
    const due = outcomeOf(tab.session.accessToken());
    await here.run(0);
    expect(due.value).toBe(token);
    await here.run(2_000);
    expect(here.attempts).toBe(2);
  });

  test("that fails says what the service responded", async () => {
    const here = world();
    here.network = "unavailable";
    const asked = outcomeOf(here.open().session.accessToken());
    await here.run(10_000);
    expect(asked.error).toMatchObject({ reason: "unavailable", cause: 503, message: "session unavailable" });
  });
});

describe("another tab that asks for a token", () => {
  async function repliesTo(here: World, newerThan: number) {
    const [own] = [...here.channels].filter(({ name }) => name === NAME);
    const replies = listenTo(here, "box");
    own?.onmessage?.({ data: { type: "ask", newerThan, replyTo: "box" } });
    await here.run(10);
    return replies.map(({ type }) => type);
  }

  test("gets it if it is newer than its own", async () => {
    const here = world();
    const { tab } = await hiddenTab(here);
    const { iat } = tab.session.snapshot.claims as { readonly iat: number };
    expect(await repliesTo(here, iat - 1)).toEqual(["token"]);
    expect(await repliesTo(here, iat)).toEqual([]);
  });

  test.each([
    [1, ["token"]],
    [0, []],
    [-1, []],
  ])("%d ms before the token is due, it gets %j", async (beforeMs, replies) => {
    const here = world();
    const { issuedAtMs } = await hiddenTab(here);
    await here.run(issuedAtMs + 0.92 * LIFE_MS - beforeMs - here.nowMs);
    expect(await repliesTo(here, 0)).toEqual(replies);
  });

  test("gets none from a tab that doubts its own", async () => {
    const here = world();
    const { tab } = await hiddenTab(here);
    here.dispatch(tab, "resume");
    await here.run(0);
    expect(await repliesTo(here, 0)).toEqual([]);
  });

  test("delays a request as long as a valid token lasts, and only a moment where there is none", async () => {
    for (const [ageMs, waitMs] of [
      [LIFE_MS - 1, 500],
      [LIFE_MS, 50],
    ] as const) {
      const here = world();
      const { tab, issuedAtMs } = await hiddenTab(here);
      await here.run(issuedAtMs + ageMs - here.nowMs);
      const startMs = here.nowMs;
      tab.visible = true;
      void outcomeOf(tab.session.accessToken());
      await here.run(2_000);
      expect((here.refreshedAtMs[1] as number) - 20 - startMs).toBe(waitMs);
    }
  });
});

describe("a response that comes late", () => {
  test("to a tab that has heard of a sign-in since is never shown", async () => {
    const here = world();
    const [waiting, other] = [here.open(), here.open()];
    const shown: unknown[] = [];
    waiting.session.subscribe(() => shown.push(waiting.session.snapshot.claims?.sid));
    here.latencyMs = 1_000;
    while (here.refreshes < 1) await here.run(1);
    here.latencyMs = 20;
    here.signIn();
    void outcomeOf(other.session.begin());
    await here.run(10_000);
    expect(waiting.session.snapshot.claims?.sid).toBe("s1");
    expect(shown).not.toContain("s0");
  });

  test("with a token whose session has ended since is not sent to other tabs", async () => {
    const here = world();
    const opening = here.open();
    const heard = listenTo(here);
    void outcomeOf(opening.session.accessToken());
    here.latencyMs = 1_000;
    while (here.refreshes < 1) await here.run(1);
    here.latencyMs = 20;
    here.revoke();
    for (const { name, onmessage } of here.channels)
      if (name === NAME) onmessage?.({ data: { type: "ended", sid: "s0" } });
    await here.run(10_000);
    expect(opening.session.snapshot.state).toBe("ended");
    expect(heard.map(({ type }) => type)).not.toContain("token");
  });
});

describe("attempts that fail", () => {
  test("are repeated after at most 1 s, 2 s, 4 s … 60 s", async () => {
    const here = world();
    here.network = "unavailable";
    here.open().session.subscribe(() => {});
    await here.run(600_000);
    const gaps = here.failedAtMs.slice(1).map((atMs, index) => atMs - (here.failedAtMs[index] as number));
    expect(gaps.length).toBeGreaterThan(10);
    for (const [failures, gapMs] of gaps.entries()) {
      // Half of the longest wait, because of this world's random numbers; then a spread, a reply that does not come, and the response.
      const leastMs = Math.min(60_000, 1_000 * 2 ** failures) / 2;
      expect(gapMs).toBeGreaterThanOrEqual(leastMs);
      expect(gapMs).toBeLessThan(leastMs + 1_000);
    }
  });

  test("delay the other tabs, too", async () => {
    const here = world();
    here.network = "limited";
    const [first, second] = [here.open(), here.open()];
    for (const { session } of [first, second]) session.subscribe(() => {});
    for (let call = 0; call < 4; call++) {
      void outcomeOf(second.session.accessToken());
      await here.run(5_000);
    }
    expect(here.attempts).toBe(1);
    expect(second.session.snapshot.state).toBe("offline");
  });

  test("are repeated early when the network is back, and not when the tab is seen", async () => {
    const here = world();
    here.network = "limited";
    const tab = here.open();
    tab.session.subscribe(() => {});
    await here.run(5_000);
    for (const type of ["visibilitychange", "pageshow", "resume"] as const) here.dispatch(tab, type);
    await here.run(5_000);
    expect(here.attempts).toBe(1);
    here.dispatch(tab, "online");
    await here.run(1_000);
    expect(here.attempts).toBe(2);
  });

  test("are not put off by a doubt that comes in between", async () => {
    const here = world();
    here.network = "limited";
    const tab = here.open();
    tab.session.subscribe(() => {});
    await here.run(25_000);
    here.dispatch(tab, "resume");
    await here.run(10_000);
    expect(here.attempts).toBe(2);
  });

  test("are repeated while the token is fresh", async () => {
    const here = world();
    const tab = here.open();
    const first = outcomeOf(tab.session.accessToken());
    await here.run(1_000);
    here.refusedTokens.add(first.value as string);
    countCalls(here, ({ url }) => url.endsWith("/refresh"));
    void outcomeOf(tab.session.fetch(API));
    await here.run(1_000);
    expect(tab.session.snapshot.state).toBe("offline");
    here.blocks = () => false;
    await here.run(10_000);
    expect(tab.session.snapshot.state).toBe("active");
    expect(here.refreshes).toBe(2);
  });
});

describe("a tab that is seen again", () => {
  test.each([
    ["visibilitychange", false, 1],
    ["pageshow", false, 1],
    ["pageshow", true, 2],
    ["resume", false, 2],
  ] as const)(
    "by %s (persisted: %j) has made %d requests, without a hint cookie",
    async (type, persisted, attempts) => {
      const here = world();
      const tab = here.open();
      tab.session.subscribe(() => {});
      await here.run(1_000);
      here.dispatch(tab, type, persisted);
      await here.run(5_000);
      expect(here.attempts).toBe(attempts);
    },
  );

  test("checks although calls go on all the time, and shows nothing new if nothing is", async () => {
    const here = world();
    const tab = here.open();
    tab.session.subscribe(() => {});
    await here.run(1_000);
    const { snapshot } = tab.session;
    here.dispatch(tab, "resume");
    await here.run(0);
    expect(tab.session.snapshot).toBe(snapshot);
    for (let call = 0; call < 30; call++) {
      void outcomeOf(tab.session.accessToken());
      await here.run(100);
    }
    expect(here.attempts).toBe(2);
  });
});

describe("a token that an API refuses", () => {
  test("is not sent again when there is no other one", async () => {
    const here = world();
    const { tab, token } = await hiddenTab(here);
    here.refusedTokens.add(token);
    const calls = countCalls(here, ({ url }) => url.endsWith("/refresh"));
    const response = outcomeOf(tab.session.fetch(API));
    await here.run(5_000);
    expect(response.value?.status).toBe(401);
    expect(calls).toEqual(["GET /api", "POST /v1/auth/refresh"]);
  });

  test("is not renewed again where it has been by the time of the response", async () => {
    const here = world();
    const { tab, token, issuedAtMs } = await hiddenTab(here);
    await here.run(issuedAtMs + 0.93 * LIFE_MS - here.nowMs);
    here.refusedTokens.add(token);
    here.latencyMs = 3_000;
    const response = outcomeOf(tab.session.fetch(API));
    await here.run(30);
    here.latencyMs = 20;
    await here.run(10_000);
    expect(response.value?.status).toBe(200);
    expect(here.refreshes).toBe(2);
  });

  test("is refused to the caller as it is if the session has ended by then", async () => {
    const here = world();
    const [tab, other] = [here.open(), here.open()];
    for (const { session } of [tab, other]) session.subscribe(() => {});
    await here.run(1_000);
    here.accepts = () => false;
    here.latencyMs = 1_000;
    const response = outcomeOf(tab.session.fetch(API));
    await here.run(30);
    here.latencyMs = 20;
    void outcomeOf(other.session.end());
    await here.run(5_000);
    expect(response.value?.status).toBe(401);
    expect(tab.session.snapshot.state).toBe("ended");
  });
});

describe("a sign-out", () => {
  test.each([
    ["a page that has no token", undefined, []],
    [
      "a page that a server has rendered without the token",
      { claims: { sid: "s9", iat: 1_000, exp: 1_300 }, ageMs: 0 },
      // The user may have signed in again.
      ["POST /v1/auth/refresh"],
    ],
  ])("without the cookie, by %s, is repeated once", async (_, initial, further) => {
    const here = world();
    here.forgetCookies();
    const calls = countCalls(here);
    const tab = here.open({ initial });
    const ended = outcomeOf(tab.session.end());
    await here.run(5_000);
    expect(ended).toEqual({ done: true, value: undefined });
    expect(tab.session.snapshot.state).toBe("ended");
    expect(calls).toEqual(["POST /v1/auth/logout", "POST /v1/auth/logout", ...further]);
  });

  test("with the cookies of two users, by a page that has no token, ends the session that remains", async () => {
    const here = world();
    here.isAmbiguous = true;
    const tab = here.open();
    const ended = outcomeOf(tab.session.end());
    await here.run(5_000);
    expect(ended).toEqual({ done: true, value: undefined });
    expect(here.over.has("s0")).toBe(true);
  });

  test("that ends the session of a page load beside it is noticed by the tab that took its token", async () => {
    const here = world();
    const tab = here.open();
    tab.session.subscribe(() => {});
    await here.run(1_000);
    here.signInByPage();
    const page = here.open();
    void outcomeOf(page.session.begin());
    while (here.attempts < 2) await here.run(1);
    await here.run(5);
    const ended = outcomeOf(tab.session.end());
    while (here.refreshes < 2) await here.run(1);
    // The service executes the sign-out with the new cookie. Its response comes after the token of the new session.
    here.latencyMs = 1_000;
    await here.run(100);
    expect(tab.session.snapshot).toMatchObject({ state: "active", claims: { sid: "s1" } });
    here.kill(page);
    here.latencyMs = 20;
    await here.run(5_000);
    expect(ended).toEqual({ done: true, value: undefined });
    expect(tab.session.snapshot.state).toBe("ended");
  });
});

describe("a sign-out after a sign-in on another page, which this tab has not noticed,", () => {
  /** Opens a tab of alice. Then somebody signs in on another page. */
  async function openStale(subject: string) {
    const here = world();
    const tab = here.open();
    tab.session.subscribe(() => {});
    await here.run(1_000);
    const signInElsewhere = () => {
      here.subject = subject;
      return here.signInByPage();
    };
    return { here, tab, signInElsewhere };
  }

  test("ends the session of its tab, and not that of another user", async () => {
    const { here, tab, signInElsewhere } = await openStale("bob");
    signInElsewhere();
    const ended = outcomeOf(tab.session.end());
    await here.run(5_000);
    expect(ended).toEqual({ done: true, value: undefined });
    expect([here.over.has("s0"), here.signedIn]).toEqual([true, "s1"]);
    expect(tab.session.snapshot.state).toBe("ended");
  });

  test("repeated because its response was lost, ends nothing of another user", async () => {
    const { here, tab, signInElsewhere } = await openStale("bob");
    here.network = "lost";
    const lost = outcomeOf(tab.session.end());
    await here.run(20_000);
    expect(lost.error).toMatchObject({ reason: "unavailable" });
    here.network = "up";
    signInElsewhere();
    const ended = outcomeOf(tab.session.end());
    await here.run(5_000);
    expect(ended).toEqual({ done: true, value: undefined });
    expect(here.signedIn).toBe("s1");
    expect(tab.session.snapshot).toMatchObject({ state: "active", claims: { sub: "bob" }, changed: true });
  });

  test("repeated because its response was lost, says that the same user is signed in again, and ends that session next", async () => {
    const { here, tab, signInElsewhere } = await openStale("alice");
    here.network = "lost";
    void outcomeOf(tab.session.end());
    await here.run(20_000);
    here.network = "up";
    signInElsewhere();
    const stillIn = outcomeOf(tab.session.end());
    await here.run(5_000);
    expect(stillIn.error).toMatchObject({ reason: "unavailable" });
    expect(tab.session.snapshot).toMatchObject({ state: "active", claims: { sid: "s1" } });
    const ended = outcomeOf(tab.session.end());
    await here.run(5_000);
    expect(ended).toEqual({ done: true, value: undefined });
    expect(here.over.has("s1")).toBe(true);
    expect(tab.session.snapshot.state).toBe("ended");
  });

  test("repeated although it has succeeded, ends nothing more", async () => {
    const { here, tab, signInElsewhere } = await openStale("bob");
    void outcomeOf(tab.session.end());
    await here.run(5_000);
    signInElsewhere();
    const again = outcomeOf(tab.session.end());
    await here.run(5_000);
    expect(again).toEqual({ done: true, value: undefined });
    expect(here.signedIn).toBe("s1");
  });

  test("by the page of that sign-in, which has no token yet, ends its session although another tab reports the end of the former", async () => {
    const here = world();
    const former = here.open();
    former.session.subscribe(() => {});
    await here.run(1_000);
    here.subject = "bob";
    here.signInByPage();
    here.blocks = ({ url }) => url.endsWith("/refresh");
    const next = here.open({ hintCookie: "session_hint" });
    next.session.subscribe(() => {});
    await here.run(1_000);
    void outcomeOf(former.session.end());
    await here.run(1_000);
    expect(next.session.snapshot.state).toBe("offline");
    const ended = outcomeOf(next.session.end());
    await here.run(5_000);
    expect(ended).toEqual({ done: true, value: undefined });
    expect(here.over.has("s1")).toBe(true);
  });

  test("is reported when nobody can tell who is signed in, and ends nothing of another user when it is repeated", async () => {
    const { here, tab, signInElsewhere } = await openStale("bob");
    here.network = "lost";
    void outcomeOf(tab.session.end());
    await here.run(20_000);
    here.network = "up";
    signInElsewhere();
    here.blocks = ({ url }) => url.endsWith("/refresh");
    for (let time = 0; time < 3; time++) {
      const ended = outcomeOf(tab.session.end());
      await here.run(5_000);
      expect(ended.error).toMatchObject({ reason: "unavailable" });
      expect([here.signedIn, here.over.has("s1")]).toEqual(["s1", false]);
    }
    here.blocks = () => false;
    const ended = outcomeOf(tab.session.end());
    await here.run(5_000);
    expect(ended).toEqual({ done: true, value: undefined });
    expect(here.signedIn).toBe("s1");
    expect(tab.session.snapshot).toMatchObject({ state: "active", claims: { sub: "bob" }, changed: true });
  });

  test.each([0, 300, 3_000])(
    "of a session that is over already succeeds with a latency of %d ms, though other tabs do not know it and refreshes failed before",
    async (latencyMs) => {
      const here = world();
      const [tab, other] = [here.open(), here.open()];
      for (const { session } of [tab, other]) session.subscribe(() => {});
      await here.run(1_000);
      here.revoke();
      here.latencyMs = latencyMs;
      here.blocks = ({ url }) => url.endsWith("/refresh");
      const failed = outcomeOf(tab.session.end());
      await here.run(15_000);
      expect(failed.error).toMatchObject({ reason: "unavailable" });
      here.blocks = () => false;
      const ended = outcomeOf(tab.session.end());
      await here.run(15_000);
      expect(ended).toEqual({ done: true, value: undefined });
      expect([tab, other].map(({ session }) => session.snapshot.state)).toEqual(["ended", "ended"]);
    },
  );
});

describe("begin and dispose", () => {
  test("a page that has looked for no session takes the one that a server renders", async () => {
    const here = world();
    const { session } = here.open();
    await session.begin({ claims: { sub: "alice", sid: "s0", iat: 1_000, exp: 1_300 }, ageMs: 0 });
    expect(session.snapshot).toMatchObject({ state: "active", claims: { sub: "alice" } });
    expect(here.attempts).toBe(0);
  });

  test("begin rejects when nobody can say who is signed in", async () => {
    const here = world();
    here.network = "offline";
    const begun = outcomeOf(here.open().session.begin());
    await here.run(5_000);
    expect(begun.error).toMatchObject({ reason: "unavailable" });
  });

  test("a page that is left while its tab asks the others ends at once, without a timer", async () => {
    const here = world();
    const tab = here.open();
    const asked = outcomeOf(tab.session.accessToken());
    await here.run(10);
    tab.session.dispose();
    await here.run(0);
    expect(asked.error).toMatchObject({ reason: "disposed" });
    expect([...tab.holds]).toEqual([]);
    expect(here.attempts).toBe(0);
  });

  test("a session that is disposed before its first use opens nothing", async () => {
    const here = world();
    const tab = here.open();
    tab.session.dispose();
    await expect(tab.session.accessToken()).rejects.toMatchObject({ reason: "disposed" });
    await expect(tab.session.end()).rejects.toMatchObject({ reason: "disposed" });
    expect([tab.holds.size, tab.listeners.size, here.channels.size]).toEqual([0, 0, 0]);
  });
});

describe("where requests go", () => {
  test("a base URL may end in a slash, and may be of another origin", async () => {
    const here = world();
    const urls: string[] = [];
    here.blocks = ({ url }) => urls.push(url) > 0;
    void outcomeOf(here.open({ baseUrl: "https://auth.example/" }).session.accessToken());
    void outcomeOf(here.open({ baseUrl: "https://app.example/session/" }).session.accessToken());
    await here.run(100);
    expect(urls).toEqual(["https://auth.example/v1/auth/refresh", "https://app.example/session/v1/auth/refresh"]);
  });

  test("tabs that spell the base URL of a service differently share its refreshes, and the URLs stay as they are spelled", async () => {
    const urls: unknown[] = [];
    // Browsers resolve URLs against that of the page.
    const Resolving = class extends Request {
      constructor(input: string | URL | Request, init?: RequestInit) {
        if (String(input).endsWith("/refresh")) urls.push(input);
        super(typeof input === "string" ? new URL(input, "https://app.example/orders?page=2") : input, init);
      }
    };
    vi.stubGlobal("Request", Resolving);
    onTestFinished(() => void vi.unstubAllGlobals());
    const spellings = ["/", "https://app.example", "https://app.example:443/", "HTTPS://App.Example", "", undefined];
    for (const first of spellings) {
      const here = world();
      const tabs = [first, ...spellings].map((baseUrl) => here.open({ baseUrl } as { baseUrl: string }));
      const asked = [];
      for (const { session } of tabs) {
        asked.push(outcomeOf(session.accessToken()));
        await here.run(1_000);
      }
      expect(new Set(asked.map(({ value }) => value ?? "none")).size).toBe(1);
      expect([here.refreshes, [...here.channels].map(({ name }) => name)]).toEqual([1, Array(7).fill(NAME)]);
    }
    // The device kit of version 0.2.0 has named the keys that browsers keep by these.
    const own = "https://app.example";
    expect(urls).toEqual(
      ["", own, `${own}:443`, "HTTPS://App.Example", "", own].map((base) => `${base}/v1/auth/refresh`),
    );
  });

  test("an origin that the application names gets the token, and another one does not", async () => {
    const here = world();
    const { session } = here.open({ origins: ["https://api.example", "https://files.example/x"] });
    const calls = ["https://api.example/a", "https://files.example/b", "/c", "https://other.example/d"].map((url) =>
      outcomeOf(session.fetch(new URL(url, "https://app.example"))),
    );
    await here.run(1_000);
    expect(calls.map(({ value, error }) => value?.status ?? (error as Error).name)).toEqual([
      200,
      200,
      200,
      "TypeError",
    ]);
  });
});

describe("the interceptor", () => {
  const call = (stream: boolean) => ({
    url: "https://app.example/x.Orders/List",
    stream,
    header: new Headers(),
    signal: new AbortController().signal,
  });
  /** Sends a call whose token is refused as `error` says. Returns how often it was sent, and how it ended. */
  async function refusedWith(error: unknown, stream = false, blocked = false) {
    const here = world();
    const { tab } = await hiddenTab(here);
    if (blocked) here.blocks = ({ url }) => url.endsWith("/refresh");
    let sent = 0;
    const next = async (_request: ReturnType<typeof call>) => {
      sent++;
      throw error;
    };
    const outcome = outcomeOf(tab.session.interceptor(next)(call(stream)));
    await here.run(5_000);
    expect(outcome.error).toBe(error);
    return [sent, here.attempts];
  }
  const coded = (code: number) => Object.assign(new Error("refused"), { code });

  test("renews and repeats a call that is refused as unauthenticated, and no other", async () => {
    expect(await refusedWith(coded(16))).toEqual([2, 2]);
    expect(await refusedWith(coded(7))).toEqual([1, 1]);
    expect(await refusedWith(new TypeError("offline"))).toEqual([1, 1]);
    expect(await refusedWith(undefined)).toEqual([1, 1]);
  });

  test("leaves no listener at the signal of a call, which may live as long as the page", async () => {
    const here = world();
    const { tab } = await hiddenTab(here);
    const one = call(false);
    const attempts = [Promise.reject(coded(16)), Promise.resolve("served")];
    const outcome = outcomeOf(tab.session.interceptor(async () => attempts.shift())(one));
    await here.run(5_000);
    expect(outcome.value).toBe("served");
    expect(getEventListeners(one.signal, "abort")).toEqual([]);
  });

  test("renews for a stream without repeating it, and repeats nothing without another token", async () => {
    expect(await refusedWith(coded(16), true)).toEqual([1, 2]);
    expect(await refusedWith(coded(16), false, true)).toEqual([1, 2]);
  });
});
