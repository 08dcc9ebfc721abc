/** What the kit decides for each state of the cookies, the verifier and the service. Both are simulated: this is a table of outcomes. */
import { describe, expect, onTestFinished, test, vi } from "vitest";
import {
  createGate,
  createServerSessions,
  type ServerSessionsEvent,
  type ServerSessionsOptions,
} from "../../src/server/index.ts";

const NOW_MS = 1_800_000_000_000;
const NOW = NOW_MS / 1000;
const sidOf = (byte: number) => Buffer.alloc(17, byte).toString("base64url");
/** Returns a refresh token in the form of the service. */
function refreshOf(byte: number): string {
  const bytes = Buffer.alloc(72, 0xff);
  bytes[0] = 1;
  return bytes.fill(byte, 5, 22).toString("base64url");
}
const [OWN, OTHER] = [`refresh_token=${refreshOf(0xfb)}`, `refresh_token=${refreshOf(2)}`];

/** The access tokens, by what the verifier says of them. */
const TOKENS: Readonly<Record<string, { readonly exp: number } | string>> = {
  fresh: { exp: NOW + 11 },
  due: { exp: NOW + 10 },
  new: { exp: NOW + 300 },
  ...{ expired: "expired", revoked: "revoked", stale: "stale", unknown: "unavailable" },
};
const verifier: ServerSessionsOptions["verifier"] = {
  async verify(token) {
    const found = TOKENS[token] ?? "malformed";
    if (typeof found === "string") return { ok: false, reason: found };
    return { ok: true, claims: { sub: "alice", sid: sidOf(0xfb), exp: found.exp } };
  },
};

const renewed = (accessToken = "new") =>
  Response.json(
    { data: { accessToken } },
    { headers: { "set-cookie": `access_token=${accessToken}; Path=/`, "secure-session-challenge": "c" } },
  );
const ENDED = () => Response.json({ error: { code: "E001_AUTH_FAILURE" } }, { status: 401 });
const OUTAGE = () => Promise.reject(new TypeError("fetch failed"));

/** Opens a kit, and lists the calls of its service. */
function open(respond: (call: number) => Response | Promise<Response> = () => renewed(), options = {}) {
  const calls: { readonly url: string; readonly headers: Headers }[] = [];
  const sessions = createServerSessions({
    service: "http://service.test/",
    verifier,
    clock: () => NOW_MS,
    fetch: async (url, init) => respond(calls.push({ url: String(url), headers: new Headers(init?.headers) })),
    ...options,
  });
  return { sessions, calls };
}
const request = (cookie: string, headers = {}) => {
  const own = new Headers(headers);
  if (cookie) own.set("cookie", cookie);
  return { method: "GET", url: "/", headers: own };
};
const [FRESH, DUE, EXPIRED] = ["access_token=fresh", "access_token=due", "access_token=expired"];
const CLEAR = "access_token=; Path=/; HttpOnly; Secure; SameSite=Lax; Max-Age=0";
const NEW = ["access_token=new; Path=/"];

describe("a page view", () => {
  test.each<[string, string, string, number]>([
    ["without cookies", "", "ended", 0],
    ["with a valid token alone", FRESH, "active", 0],
    ["with a valid token of the same session", `${FRESH}; ${OWN}`, "active", 0],
    ["with a valid token of another session", `${FRESH}; ${OTHER}`, "active", 1],
    ["with a valid token of one of two sessions", `${FRESH}; ${OWN}; ${OTHER}`, "active", 1],
    ["with a refresh token of an unknown form", `${FRESH}; refresh_token=x${refreshOf(2)}`, "active", 0],
    ["with a token that is due, and no other", DUE, "active", 0],
    ["with a token that is due", `${DUE}; ${OWN}`, "active", 1],
    ["with an expired token alone", EXPIRED, "ended", 0],
    ["with an expired token", `${EXPIRED}; ${OWN}`, "active", 1],
    ["with two tokens", `${FRESH}; access_token=new`, "ended", 0],
    ["with a token that cannot be judged", `access_token=unknown; ${OWN}`, "unavailable", 0],
    ["with a refresh token alone", OWN, "active", 1],
  ])("%s", async (_, cookie, state, count) => {
    const { sessions, calls } = open();
    const { user, setCookies } = await sessions.authenticate(request(cookie));
    expect([user.state, calls.length, setCookies]).toEqual([state, count, count === 0 ? [] : NEW]);
    expect(calls.map(({ url }) => url)).toEqual(calls.map(() => "http://service.test/v1/auth/refresh"));
  });

  test.each<[string, string, () => Response | Promise<Response>, string, readonly string[]]>([
    ["has ended", OWN, ENDED, "ended", []],
    ["has ended, beside a token", `${DUE}; ${OWN}`, ENDED, "ended", [CLEAR]],
    [
      "has ended, by the response to a browser without its device cookie",
      `${OWN}; refresh_token_device_mark=1`,
      ENDED,
      "unavailable",
      [],
    ],
    ["has ended, for the device", `${OWN}; refresh_token_device=1; refresh_token_device_mark=1`, ENDED, "ended", []],
    ["is not known", OWN, OUTAGE, "unavailable", []],
    ["is not known, beside a token that is still valid", `${DUE}; ${OWN}`, OUTAGE, "active", []],
    ["was revoked meanwhile", OWN, () => renewed("revoked"), "ended", ["access_token=revoked; Path=/"]],
    [
      "is refused for the wrong options",
      OWN,
      () => renewed("expired"),
      "unavailable",
      ["access_token=expired; Path=/"],
    ],
  ])("whose session %s", async (_, cookie, respond, state, setCookies) => {
    const { sessions, calls } = open(respond);
    const result = await sessions.authenticate(request(cookie));
    expect([result.user.state, result.setCookies, calls.length]).toEqual([state, setCookies, 1]);
  });

  test.each<[string, string, Record<string, string>, number, string]>([
    ["for an image", OWN, { "sec-fetch-dest": "image" }, 0, "unavailable"],
    ["for an image, with a token that is due", `${DUE}; ${OWN}`, { "sec-fetch-dest": "image" }, 0, "active"],
    [
      "by a script of another site",
      OWN,
      { "sec-fetch-site": "cross-site", "sec-fetch-mode": "cors" },
      0,
      "unavailable",
    ],
    ["by a link on another site", OWN, { "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate" }, 1, "active"],
    ["by a script of its own", OWN, { "sec-fetch-site": "same-origin", "sec-fetch-mode": "cors" }, 1, "active"],
    ["by a link of its own", OWN, { "sec-fetch-site": "same-origin", "sec-fetch-mode": "navigate" }, 1, "active"],
    [
      "by a prefetch of the browser, whose page is shown later",
      OWN,
      { "sec-purpose": "prefetch", "sec-fetch-site": "same-origin", "sec-fetch-mode": "navigate" },
      1,
      "active",
    ],
    [
      "by a prefetch of the router of Next.js",
      OWN,
      { rsc: "1", "next-router-prefetch": "1", "sec-fetch-site": "same-origin", "sec-fetch-mode": "cors" },
      1,
      "active",
    ],
  ])("%s", async (_, cookie, headers, count, state) => {
    const { sessions, calls } = open();
    expect((await sessions.authenticate(request(cookie, headers))).user.state).toBe(state);
    const passed = headers["sec-fetch-site"] === "cross-site" ? null : headers["sec-fetch-site"];
    expect(calls.map((call) => call.headers.get("sec-fetch-site"))).toEqual(Array(count).fill(passed));
    expect(calls.map((call) => call.headers.get("x-forwarded-for"))).toEqual(Array(count).fill(null));
  });

  test.each<[string, object, readonly string[], string]>([
    ["once more", {}, ["stale", "new"], "active"],
    ["once more, and not again", {}, ["stale", "stale"], "unavailable"],
    ["no further where a token is accepted once", { reuseIntervalMs: 0 }, ["stale"], "unavailable"],
  ])("whose new token is stale refreshes %s", async (_, options, tokens, state) => {
    const { sessions, calls } = open((call) => renewed(tokens[call - 1]), options);
    expect((await sessions.authenticate(request(OWN))).user.state).toBe(state);
    expect(calls).toHaveLength(tokens.length);
  });

  test.each<[string, number]>([
    ["old=1", 1],
    ["old.0=1; old.10=2", 1],
    ["__Host-old=1", 1],
    ["__Secure-old.1=1", 1],
    ["old=", 0],
    ["old.100=1", 0],
    ["x__Host-old=1", 0],
    ["other=1", 0],
  ])("with %s, the cookie of another system, causes %i refreshes", async (cookie, count) => {
    const { sessions, calls } = open(undefined, { migrateCookies: ["old"] });
    await sessions.authenticate(request(cookie));
    await sessions.authenticate(request(`${cookie}; theme=dark`));
    expect(calls).toHaveLength(count);
    await sessions.authenticate(request(`${cookie}2`));
    expect(calls).toHaveLength(cookie === "old=" ? 1 : 2 * count);
    expect((await open().sessions.authenticate(request(cookie))).user.state).toBe("ended");
  });

  test("with a session of another system that has ended signs nobody in", async () => {
    const { sessions } = open(ENDED, { migrateCookies: ["old"] });
    expect((await sessions.authenticate(request("old=1"))).user).toEqual({ state: "ended" });
  });

  test.each([
    ["__Host-refresh_token", "refresh_token", 1],
    ["__Host-refresh_token", "__Host-refresh_token", 1],
    ["__Host-refresh_token", "x__Host-refresh_token", 0],
    ["x__Host-refresh_token", "xrefresh_token", 0],
  ])("finds the refresh token of %s in the cookie %s: %i", async (refreshCookie, name, count) => {
    const { sessions, calls } = open(undefined, { refreshCookie });
    await sessions.authenticate(request(`${name}=${refreshOf(1)}`));
    expect(calls).toHaveLength(count);
  });

  test.each([
    ["the default", {}, 2_500],
    ["20 s", { reuseIntervalMs: 20_000 }, 5_000],
  ])(
    "shares a refresh, but not its cookies, for a quarter of the reuse interval: with %s",
    async (_, options, shareMs) => {
      let nowMs = NOW_MS;
      const { sessions, calls } = open(undefined, { ...options, clock: () => nowMs });
      const views: unknown[] = [];
      for (const laterMs of [0, shareMs - 1, shareMs]) {
        nowMs = NOW_MS + laterMs;
        const { user, setCookies, forward } = await sessions.authenticate(request(OWN));
        views.push([user.state, calls.length, setCookies, forward.get("cookie")]);
      }
      const cookie = `${OWN}; access_token=new`;
      expect(views).toEqual([
        ["active", 1, NEW, cookie],
        ["active", 1, [], cookie],
        ["active", 2, NEW, cookie],
      ]);
    },
  );

  test("with another state of the device shares no refresh", async () => {
    const { sessions, calls } = open();
    await sessions.authenticate(request(OWN));
    await sessions.authenticate(request(OWN, { "secure-session-skipped": "quota_exceeded" }));
    expect(calls).toHaveLength(2);
  });

  test("sends the new cookies to the browser, and to what renders the page", async () => {
    const { responseHeaders, forward } = await open().sessions.authenticate(request(`theme=dark; ${OWN}`));
    expect([...responseHeaders]).toEqual([
      ["cache-control", "private, no-store"],
      ["secure-session-challenge", "c"],
      ["set-cookie", "access_token=new; Path=/"],
      ["vary", "Cookie"],
    ]);
    expect(Object.fromEntries(forward)).toEqual({
      cookie: `theme=dark; ${OWN}; access_token=new`,
      "x-session-state": "active",
    });
    expect((await open().sessions.authenticate(request(""))).forward.has("cookie")).toBe(false);
    const { forward: without } = await open(ENDED).sessions.authenticate(request(`access_token=expired; ${OWN}`));
    expect(without.get("cookie")).toBe(OWN);
  });
});

describe("what renders behind the adapter", () => {
  test.each<[string | null, string, object]>([
    ["active", FRESH, { state: "active" }],
    ["active", EXPIRED, { state: "unavailable" }],
    ["ended", "", { state: "ended" }],
    ["unavailable", "", { state: "unavailable" }],
    ["ended", "access_token=unknown", { state: "unavailable" }],
    [null, FRESH, { state: "active" }],
    [null, "", { state: "ended" }],
    [null, OWN, { state: "unavailable", reason: "adapter_missing" }],
  ])("has, with the state %s and the cookies '%s', the user %j", async (state, cookie, user) => {
    const events: ServerSessionsEvent[] = [];
    const { sessions } = open(undefined, { report: (event: ServerSessionsEvent) => events.push(event) });
    const { headers } = request(cookie, state === null ? {} : { "x-session-state": state });
    for (let times = 0; times < 2; times++) expect(await sessions.current(headers)).toMatchObject(user);
    expect("reason" in (await sessions.current(headers))).toBe("reason" in user);
    expect(events).toEqual(state === null ? [{ event: "adapter_missing" }] : []);
  });

  test("is warned of a missing adapter on the console, once, and of nothing else", async () => {
    const warn = vi.spyOn(console, "warn").mockImplementation(() => {});
    onTestFinished(() => warn.mockRestore());
    const { sessions } = open();
    await createGate(sessions)(request(""));
    expect(warn).not.toHaveBeenCalled();
    for (let times = 0; times < 2; times++) await sessions.current(new Headers());
    expect(warn).toHaveBeenCalledExactlyOnceWith(expect.stringContaining("adapter did not run"));
  });
});

const GONE = "refresh_token=; Path=/; Max-Age=0";
test.each<[string, () => Response | Promise<Response>, string, readonly string[]]>([
  ["signs the user out", () => new Response('{"data":{}}', { headers: { "set-cookie": GONE } }), "ended", [GONE]],
  ["of a session that the service does not find shows that it has ended", () => ENDED(), "ended", []],
  ["changes nothing if there is no response", OUTAGE, "unavailable", []],
  ["changes nothing if another program responds", () => Response.json({ status: "ok" }), "unavailable", []],
])("a logout %s", async (_, respond, state, setCookies) => {
  const { sessions, calls } = open(respond);
  const out = await sessions.signOut(request(OWN));
  expect([out.user.state, out.setCookies]).toEqual([state, setCookies]);
  expect(out.forward.get("cookie")).toBe(setCookies.includes(GONE) ? null : OWN);
  expect(calls.map(({ url }) => url)).toEqual(["http://service.test/v1/auth/logout"]);
});

test("a kit without `fetch` takes that of the runtime as it is at the call", async () => {
  const { sessions } = open(undefined, { fetch: undefined });
  vi.stubGlobal("fetch", async () => renewed());
  onTestFinished(() => void vi.unstubAllGlobals());
  expect((await sessions.authenticate(request(OWN))).user.state).toBe("active");
});

test.each([
  [{}, "service must be"],
  [undefined, "service must be"],
  [{ service: "keys", verifier }, "service must be"],
  [{ service: 7, verifier }, "service must be"],
  [{ service: "http://u:secret@a.test", verifier }, "service must be an http:// or https:// URL without a password"],
  [{ service: "xhttp://a.test", verifier }, "service must be"],
  [{ service: new URL("http://a.test"), verifier }, "service must be"],
  [{ service: "http://a.test" }, "verifier must be"],
  [{ service: "http://a.test", verifier: {} }, "verifier must be"],
])("the options %j are refused", (options, message) => {
  expect(() => createServerSessions(options as never)).toThrow(message);
});
