/** Pages rendered on a server, by the real service. */
import { decodeJwt } from "jose";
import { describe, expect, test } from "vitest";
import { AccessTokenPolicy } from "../../gen/auth/admin/v1/session_admin_pb.ts";
import type { ActiveUser, ServerSessionsEvent, ServerSessionsOptions } from "../../src/server/index.ts";
import { aService } from "../support/every-protocol.ts";
import { admin, bearer, message, openAdmin } from "../support/sessions.ts";
import { until } from "../support/until.ts";
import { ALWAYS_DUE, aServer, aVerifier, COOKIES, Jar, signIn } from "./world.ts";

const service = aService(COOKIES);
const kept = aVerifier(service);
const server = (options = {}) => aServer(service, kept.verifier, options);

test("a page view with a valid access token makes no call and sets no cookie", async () => {
  const jar = await signIn(service, "alice");
  const { sessions, calls } = server();
  const { user, setCookies } = await sessions.authenticate(jar.request());
  expect(user).toMatchObject({
    state: "active",
    claims: { sub: "alice" },
    accessToken: jar.cookies.get("access_token"),
  });
  expect([setCookies, calls]).toEqual([[], []]);
});

test("a browser without cookies costs no call", async () => {
  const { sessions, calls } = server();
  expect((await sessions.authenticate(new Jar().request())).user).toEqual({ state: "ended" });
  expect(calls).toEqual([]);
});

test.each([
  ["absent", {}],
  ["about to expire", ALWAYS_DUE],
])(
  "an access token that is %s is renewed: the page, what renders behind it, and the browser have the new one",
  async (which, options) => {
    const jar = await signIn(service);
    if (which === "absent") jar.cookies.delete("access_token");
    const before = jar.header;
    const { sessions, calls } = server(options);
    const { user, setCookies, forward } = await sessions.authenticate(
      jar.request("/", { cookie: `${before}; theme=dark` }),
    );
    expect(calls.map(({ path }) => path)).toEqual(["/v1/auth/refresh"]);
    jar.take(setCookies);
    expect(user).toMatchObject({ state: "active", accessToken: jar.cookies.get("access_token") });
    expect(jar.header).not.toBe(before);
    expect(forward.get("cookie")?.split("; ").sort()).toEqual(["theme=dark", ...jar.header.split("; ")].sort());
    expect(await sessions.current(forward)).toEqual(user);
    expect(calls).toHaveLength(1);
  },
);

test("parallel renders share one call, and so do those within a quarter of the reuse interval; the first alone brings the cookies", async () => {
  const jar = await signIn(service);
  let nowMs = Date.now();
  const { sessions, calls } = server({ ...ALWAYS_DUE, clock: () => nowMs });
  const request = jar.request();
  const all = await Promise.all(Array.from({ length: 20 }, () => sessions.authenticate(request.clone())));
  expect(calls).toHaveLength(1);
  expect(all.map(({ setCookies }) => setCookies.length)).toEqual([2, ...Array.from({ length: 19 }, () => 0)]);
  expect(all.map(({ responseHeaders }) => responseHeaders.has("set-cookie")).lastIndexOf(true)).toBe(0);
  expect(new Set(all.map(({ forward }) => forward.get("cookie"))).size).toBe(1);
  expect(all.every(({ user }) => user.state === "active")).toBe(true);
  await sessions.authenticate(request.clone());
  expect(calls).toHaveLength(1);
  nowMs += 2_600; // The kit calls the service again after a quarter of the reuse interval, in case the first response was lost.
  expect(await sessions.authenticate(request.clone())).toMatchObject({
    user: { state: "active" },
    setCookies: [expect.any(String), expect.any(String)],
  });
  expect(calls).toHaveLength(2);
  nowMs -= 60_000; // The wall clock is set back, so the kit does not know how old its last response is, and calls the service again.
  expect((await sessions.authenticate(request.clone())).user.state).toBe("active");
  expect(calls).toHaveLength(3);
});

test("a call that takes longer than a quarter of the reuse interval is not shared with those that come later", async () => {
  const jar = await signIn(service);
  const slow = Promise.withResolvers<void>();
  let [nowMs, calls] = [Date.now(), 0];
  const { sessions } = server({
    ...ALWAYS_DUE,
    clock: () => nowMs,
    async fetch(...given: Parameters<typeof fetch>) {
      calls++;
      if (calls === 1) await slow.promise;
      return fetch(...given);
    },
  });
  const first = sessions.authenticate(jar.request());
  await until(async () => expect(calls).toBe(1));
  nowMs += 2_600;
  const second = await sessions.authenticate(jar.request());
  expect([calls, second.user.state]).toEqual([2, "active"]);
  slow.resolve();
  expect((await first).user.state).toBe("active");
});

test("responses that arrive in the wrong order end nothing", async () => {
  const jar = await signIn(service);
  // Two processes render pages for one browser, and each refreshes the session.
  const [one, two] = [server(ALWAYS_DUE), server(ALWAYS_DUE)];
  const first = await one.sessions.authenticate(jar.request());
  jar.take(first.setCookies);
  const second = await two.sessions.authenticate(jar.request());
  jar.take(second.setCookies);
  // The browser receives the cookies of the first response once more, after those of the second.
  jar.take(first.setCookies);
  const next = await server(ALWAYS_DUE).sessions.authenticate(jar.request());
  expect(next.user.state).toBe("active");
});

test("a logout ends the next render, and a response that arrives after it brings nothing back", async () => {
  const jar = await signIn(service);
  const { sessions, calls } = server(ALWAYS_DUE);
  const late = await sessions.authenticate(jar.request());
  const out = await sessions.signOut(jar.request("/logout", { "sec-fetch-site": "same-origin" }, "POST"));
  expect(out.user).toEqual({ state: "ended" });
  jar.take(out.setCookies);
  expect(jar.header).toBe("");
  jar.take(late.setCookies);
  const revoked = jar.cookies.get("access_token") ?? "";
  await until(async () => expect((await kept.verifier.verify(revoked)).ok).toBe(false));
  for (const options of [{}, ALWAYS_DUE]) {
    const { user, setCookies } = await server(options).sessions.authenticate(jar.request());
    expect(user).toEqual({ state: "ended" });
    // The refresh cookie is not removed, because it could be that of a new login.
    expect(setCookies).toEqual(["access_token=; Path=/; HttpOnly; Secure; SameSite=Lax; Max-Age=0"]);
  }
  expect(calls.map(({ path }) => path)).toEqual(["/v1/auth/refresh", "/v1/auth/logout"]);
});

describe("a sign-out on the page of a session", () => {
  const sidOf = (jar: Jar) => decodeJwt(jar.cookies.get("access_token") ?? "").sid as string;
  const signOut = (jar: Jar, sid: string, options = {}) =>
    server(options).sessions.signOut(jar.request("/logout", {}, "POST"), undefined, sid);

  test("ends that session", async () => {
    const jar = await signIn(service);
    const out = await signOut(jar, sidOf(jar));
    expect(out.user).toEqual({ state: "ended" });
    jar.take(out.setCookies);
    expect(jar.header).toBe("");
  });

  test("of a former user leaves the session and the cookies of the user who has signed in since", async () => {
    const [former, jar] = [await signIn(service), await signIn(service, "alice")];
    const before = jar.header;
    const out = await signOut(jar, sidOf(former));
    expect(out).toMatchObject({ user: { state: "active", claims: { sub: "alice" } }, setCookies: [] });
    expect(jar.header).toBe(before);
    expect(await server(ALWAYS_DUE).sessions.authenticate(jar.request())).toMatchObject({ user: { state: "active" } });
    // So it is with the access token of the former user beside the refresh token, which the browser may have got from a late response.
    jar.cookies.set("access_token", former.cookies.get("access_token") ?? "");
    expect((await signOut(jar, sidOf(former))).user).toEqual({ state: "ended" });
    jar.cookies.delete("access_token");
    const renewed = await server().sessions.authenticate(jar.request());
    expect(renewed.user).toMatchObject({ state: "active", claims: { sub: "alice" } });
    expect((await server(ALWAYS_DUE).sessions.authenticate(former.request())).user).toEqual({ state: "ended" });
  });

  test("whose refresh token is gone ends it by the access token, and no other session by theirs", async () => {
    const [former, jar] = [await signIn(service), await signIn(service)];
    const [access, sid] = [jar.cookies.get("access_token") ?? "", sidOf(jar)];
    jar.cookies.delete("refresh_token");
    expect(await signOut(jar, sidOf(former))).toMatchObject({ user: { state: "active" }, setCookies: [] });
    expect((await kept.verifier.verify(access)).ok).toBe(true);
    expect((await signOut(jar, sid)).user).toEqual({ state: "ended" });
    await until(async () => expect((await kept.verifier.verify(access)).ok).toBe(false));
  });

  test("that is no id says who is signed in", async () => {
    const jar = await signIn(service);
    for (const sid of ["x", "\ud800&a=b", "%00"]) expect((await signOut(jar, sid)).user.state).toBe("active");
    jar.cookies.set("access_token", "a.b.c");
    expect((await signOut(jar, "x")).user.state).toBe("active");
  });
});

describe("a sign-out for which the service finds no session by the refresh token", () => {
  const signOut = (jar: Jar, options = {}) => server(options).sessions.signOut(jar.request("/logout", {}, "POST"));

  test("of a browser without cookies says that nobody is signed in", async () => {
    expect(await signOut(new Jar())).toMatchObject({ user: { state: "ended" }, setCookies: [] });
  });

  test("ends the session of the access token", async () => {
    const jar = await signIn(service);
    const access = jar.cookies.get("access_token") ?? "";
    jar.cookies.delete("refresh_token");
    const out = await signOut(jar);
    expect(out.user).toEqual({ state: "ended" });
    jar.take(out.setCookies);
    expect(jar.header).toBe("");
    await until(async () => expect((await kept.verifier.verify(access)).ok).toBe(false));
  });

  test("removes an access token whose session has ended", async () => {
    const jar = await signIn(service);
    await signOut(jar);
    jar.cookies.delete("refresh_token");
    const out = await signOut(jar);
    expect(out.user).toEqual({ state: "ended" });
    jar.take(out.setCookies);
    expect(jar.header).toBe("");
  });

  test("because the cookies are of two users, says that a session continues, and succeeds when it is repeated", async () => {
    const [jar, mallory] = [await signIn(service), await signIn(service)];
    jar.cookies.delete("access_token");
    const both = `refresh_token=${mallory.cookies.get("refresh_token")}; ${jar.header}`;
    const { sessions } = server();
    const out = await sessions.signOut(jar.request("/logout", { cookie: both }, "POST"));
    expect(out.user).toEqual({ state: "unavailable" });
    // The cookies of other scopes are removed. The browser keeps that of the present scope.
    expect(out.setCookies.map((line) => /^refresh_token=; Path=([^;]+);/.exec(line)?.[1])).toContain("/v1/auth");
    expect(out.setCookies.join("\n")).not.toContain("Path=/;");
    expect((await sessions.signOut(jar.request("/logout", {}, "POST"))).user).toEqual({ state: "ended" });
    expect((await sessions.authenticate(jar.request())).user).toEqual({ state: "ended" });
  });

  test("while the access token's form cannot be sent, says that the session continues", async () => {
    const jar = await signIn(service);
    jar.cookies.delete("refresh_token");
    const cut: typeof fetch = (url, init) =>
      init?.method === "DELETE" ? Promise.reject(new TypeError("fetch failed")) : fetch(url, init);
    const out = await signOut(jar, { fetch: cut });
    expect(out).toMatchObject({ user: { state: "unavailable" }, setCookies: [] });
  });
});

test("a render that learns of the end does not undo a login that was faster", async () => {
  const jar = await signIn(service);
  const { sessions } = server(ALWAYS_DUE);
  await sessions.signOut(jar.request("/logout", {}, "POST"));
  const late = await server(ALWAYS_DUE).sessions.authenticate(jar.request());
  const again = await signIn(service, "alice");
  again.take(late.setCookies);
  expect(again.cookies.has("refresh_token")).toBe(true);
  expect((await sessions.authenticate(again.request())).user).toMatchObject({
    state: "active",
    claims: { sub: "alice" },
  });
});

test("what renders behind believes the token and not what a browser writes into a header", async () => {
  const jar = await signIn(service);
  const events: ServerSessionsEvent[] = [];
  const { sessions } = server({ report: (event: ServerSessionsEvent) => events.push(event) });
  const forged = { "x-session-state": "active" };
  const { forward } = await sessions.authenticate(new Jar().request("/", forged));
  expect(await sessions.current(forward)).toEqual({ state: "ended" });
  expect((await sessions.current(new Headers(forged))).state).not.toBe("active");
  jar.cookies.delete("access_token");
  expect(events).toEqual([]);
  // `current` does not call the service. Without an access token it does not know whether the session is live.
  const missing = { state: "unavailable", reason: "adapter_missing" };
  expect(await sessions.current(jar.request().headers)).toEqual(missing);
  expect(await sessions.current(jar.request().headers)).toEqual(missing);
  expect(events).toEqual([{ event: "adapter_missing" }]);
});

test("of two access tokens, one of which a sibling domain may have set, none counts", async () => {
  const [jar, mallory] = [await signIn(service), await signIn(service, "mallory")];
  const cookie = `access_token=${mallory.cookies.get("access_token")}; ${jar.header}`;
  const { sessions, calls } = server();
  const { user } = await sessions.authenticate(jar.request("/", { cookie }));
  expect(user).not.toMatchObject({ claims: { sub: "mallory" } });
  expect(calls).toHaveLength(1);
});

describe("an access token that a sibling domain has set beside one's own refresh token", () => {
  /** Returns the cookies of a user, with the access token of another one. */
  async function planted() {
    const [jar, mallory] = [await signIn(service, "alice"), await signIn(service, "mallory")];
    jar.cookies.set("access_token", mallory.cookies.get("access_token") ?? "");
    return jar;
  }

  test("the page shows its own user, and the browser gets its own access token", async () => {
    const jar = await planted();
    const { sessions, calls } = server();
    const { user, setCookies, forward } = await sessions.authenticate(jar.request());
    expect([user, calls.length]).toMatchObject([{ state: "active", claims: { sub: "alice" } }, 1]);
    expect(await sessions.current(forward)).toEqual(user);
    jar.take(setCookies);
    expect((await sessions.authenticate(jar.request())).user).toMatchObject({ claims: { sub: "alice" } });
    expect(calls).toHaveLength(1);
  });

  test("nobody is shown while the service cannot be reached, nor in a part of a page", async () => {
    const jar = await planted();
    const { sessions } = server({ fetch: () => Promise.reject(new TypeError("fetch failed")) });
    expect((await sessions.authenticate(jar.request())).user).toEqual({ state: "unavailable" });
    const { user, forward } = await server().sessions.authenticate(jar.request("/", { "sec-fetch-dest": "image" }));
    expect([user, await sessions.current(forward)]).toEqual([{ state: "unavailable" }, { state: "unavailable" }]);
  });

  test("no request shows the other user where several refresh tokens came, one of them of that user", async () => {
    const [jar, mallory] = [await planted(), await signIn(service, "mallory")];
    mallory.cookies.set("access_token", jar.cookies.get("access_token") ?? "");
    const cookie = `refresh_token=${mallory.cookies.get("refresh_token")}; ${jar.header}`;
    const { user } = await server().sessions.authenticate(jar.request("/", { cookie }));
    expect(user.state).toBe("ended");
  });
});

test("a refresh token of a form that the kit does not know says nothing about the access token", async () => {
  const jar = await signIn(service, "alice");
  jar.cookies.set("refresh_token", `Ag${"A".repeat(94)}`);
  const { sessions, calls } = server();
  expect((await sessions.authenticate(jar.request())).user).toMatchObject({ claims: { sub: "alice" } });
  expect(calls).toEqual([]);
});

test.each([
  ["a link on another site", { "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate" }, 1],
  ["a page of the application", { "sec-fetch-site": "same-origin", "sec-fetch-mode": "cors" }, 1],
  ["a script of another site", { "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors" }, 0],
  ["an image", { "sec-fetch-dest": "image" }, 0],
])("a request from %s makes %d refreshes", async (_, headers, count) => {
  const jar = await signIn(service);
  jar.cookies.delete("access_token");
  const { sessions, calls } = server();
  const { user } = await sessions.authenticate(jar.request("/", headers as Record<string, string>));
  expect(user.state).toBe(count === 1 ? "active" : "unavailable");
  expect(calls).toHaveLength(count as number);
});

describe("with siblings not allowed", () => {
  const strict = aService({ ...COOKIES, ALLOW_SAME_SITE: "false" });
  const verifier = aVerifier(strict);

  test.each([
    ["a link on a sibling domain", "navigate", "GET", "active"],
    ["a form on a sibling domain", "navigate", "POST", "unavailable"],
    ["a script of a sibling domain", "cors", "GET", "unavailable"],
  ])("after %s (%s, %s) the user is %s", async (_, mode, method, state) => {
    const jar = await signIn(strict);
    jar.cookies.delete("access_token");
    const { sessions } = aServer(strict, verifier.verifier);
    const headers = { "sec-fetch-site": "same-site", "sec-fetch-mode": mode };
    expect((await sessions.authenticate(jar.request("/", headers, method))).user.state).toBe(state);
  });
});

test("the service learns the browser's address and user agent", async () => {
  const jar = await signIn(service);
  const { sessions, calls } = server(ALWAYS_DUE);
  const headers = { "user-agent": "Browser/1", "x-forwarded-for": "192.0.2.1" };
  await sessions.authenticate(jar.request("/", headers), "198.51.100.2");
  expect(calls[0]?.headers.get("user-agent")).toBe("Browser/1");
  expect(calls[0]?.headers.get("x-forwarded-for")).toBe("192.0.2.1, 198.51.100.2");
});

describe("an access token from before a change of the session", () => {
  /** Creates a kit whose verifier finds some tokens stale. */
  function changing(options: Partial<ServerSessionsOptions> = {}) {
    const state = { isStale: (_: string) => false };
    const verify = async (token: string) =>
      state.isStale(token) ? ({ ok: false, reason: "stale" } as const) : kept.verifier.verify(token);
    return { state, ...server({ verifier: { verify }, ...options }) };
  }

  test("makes the next page view refresh once, and show what is true now", async () => {
    const jar = await signIn(service, "alice");
    const { sessions, calls } = server();
    for (const role of ["admin", "user"]) {
      calls.length = 0;
      const before = (await sessions.authenticate(jar.request())).user as ActiveUser;
      const update = { sessionId: before.claims.sid, claims: { role }, accessTokens: AccessTokenPolicy.REFRESH };
      message(await openAdmin(service).call(admin.updateSession, update, bearer(service.adminToken)));
      await until(async () =>
        expect(await kept.verifier.verify(before.accessToken)).toMatchObject({ reason: "stale" }),
      );
      const views = await Promise.all([1, 2, 3].map(() => sessions.authenticate(jar.request())));
      for (const { user } of views) expect(user).toMatchObject({ state: "active", claims: { sub: "alice", role } });
      for (const { setCookies } of views) jar.take(setCookies);
      expect((await sessions.authenticate(jar.request())).user).toMatchObject({ claims: { role } });
      expect(calls.map(({ path }) => path)).toEqual(["/v1/auth/refresh"]);
    }
  });

  test("is renewed once, as one that has expired: the user stays signed in", async () => {
    const jar = await signIn(service, "alice");
    const { state, sessions, calls } = changing();
    const before = jar.cookies.get("access_token");
    expect((await sessions.authenticate(jar.request())).user.state).toBe("active");
    state.isStale = (token) => token === before;
    const { user, setCookies, forward } = await sessions.authenticate(jar.request());
    expect(user).toMatchObject({ state: "active", claims: { sub: "alice" } });
    expect(await sessions.current(forward)).toEqual(user);
    jar.take(setCookies);
    expect((await sessions.authenticate(jar.request())).user).toEqual(user);
    expect(calls.map(({ path }) => path)).toEqual(["/v1/auth/refresh"]);
    // The session changes while the page is rendered: to what renders, the user has not signed out.
    state.isStale = () => true;
    expect(await sessions.current(forward)).toEqual({ state: "unavailable" });
  });

  test("that a refresh has brought, which other requests share, is renewed once more for all of them", async () => {
    const jar = await signIn(service);
    jar.cookies.delete("access_token");
    const { state, sessions, calls } = changing();
    const first = await sessions.authenticate(jar.request());
    const { accessToken } = first.user as ActiveUser;
    state.isStale = (token) => token === accessToken;
    const all = await Promise.all(Array.from({ length: 10 }, () => sessions.authenticate(jar.request())));
    expect(new Set(all.map(({ user }) => user.state))).toEqual(new Set(["active"]));
    expect(all.filter(({ setCookies }) => setCookies.length > 0)).toHaveLength(1);
    expect(calls).toHaveLength(2);
  });

  test.each([
    ["", {}, 2],
    [" of a strict service", { reuseIntervalMs: 0 }, 1],
  ])("if every token%s is one, signs nobody out and begins no loop", async (_, options, count) => {
    const jar = await signIn(service);
    const { state, sessions, calls } = changing(options);
    state.isStale = () => true;
    expect((await sessions.authenticate(jar.request())).user).toEqual({ state: "unavailable" });
    expect(calls).toHaveLength(count);
    expect((await server().sessions.authenticate(jar.request())).user.state).toBe("active");
  });
});

test.each<[string, () => Promise<Response>]>([
  ["does not respond", () => Promise.reject(new TypeError("fetch failed"))],
  ["is behind a proxy with a page of its own", async () => new Response("<html>", { status: 401 })],
  ["refuses for another reason", async () => Response.json({ error: { code: "E429_RATE_LIMITED" } }, { status: 429 })],
])("a service that %s ends nothing", async (_, respond) => {
  const jar = await signIn(service);
  const valid = await server({ ...ALWAYS_DUE, fetch: respond }).sessions.authenticate(jar.request());
  expect(valid.user.state).toBe("active");
  jar.cookies.delete("access_token");
  const absent = await server({ fetch: respond }).sessions.authenticate(jar.request());
  expect([absent.user, absent.setCookies]).toEqual([{ state: "unavailable" }, []]);
  const out = await server({ fetch: respond }).sessions.signOut(jar.request("/logout", {}, "POST"));
  expect([out.user, out.setCookies]).toEqual([{ state: "unavailable" }, []]);
});
