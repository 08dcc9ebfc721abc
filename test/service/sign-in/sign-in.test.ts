/** Signs in by real providers, through processes of the service. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { decodeJwt } from "jose";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { freePort } from "../../support/free-port.ts";
import { openBrowser, startProvider } from "../../support/oidc-provider.ts";
import { type Service, scratch, startService, waitFor } from "../../support/service.ts";
import { admin, bearer, logIn, message, openAdmin, somebody } from "../../support/sessions.ts";
import { until } from "../../support/until.ts";

let provider: Awaited<ReturnType<typeof startProvider>>;
let other: typeof provider;
let service: Service;
/** A service with both providers. */
let both: Service;
let file: string;
/** The port of a service that a test starts. */
let third: number;
const SECRET = "a secret of the client, which is long";
/** When the provider's sessions of some users end, in seconds since the epoch. */
const ends = new Map<string, unknown>();

function clientOf(origins: readonly string[], names: readonly string[]) {
  return {
    client_id: "app",
    client_secret: SECRET,
    redirect_uris: origins.flatMap((one) => names.map((name) => `${one}/v1/auth/callback${name}`)),
    post_logout_redirect_uris: origins.map((one) => `${one}/`),
    backchannel_logout_uri: `${origins[0]}/v1/auth/backchannel-logout`,
    backchannel_logout_session_required: true,
  };
}

beforeAll(async () => {
  const [port, second] = [await freePort(), await freePort()];
  const origins = [port, second].map((one) => `http://127.0.0.1:${one}`);
  const claims = { openid: ["sub", "session_expiry"], email: ["email", "email_verified"] };
  const findAccount = (_: unknown, id: string) => ({
    accountId: id,
    claims: () => ({
      sub: id,
      email: `${id}@example.com`,
      email_verified: id !== "mallory",
      ...(ends.has(id) && { session_expiry: ends.get(id) }),
    }),
  });
  const features = { backchannelLogout: { enabled: true } };
  const settings = { claims, findAccount, features, conformIdTokenClaims: false, acrValues: ["gold"] };
  provider = await startProvider({ ...settings, clients: [clientOf(origins, ["", "/first"])] });
  third = await freePort();
  const all = [...origins, `http://127.0.0.1:${third}`];
  other = await startProvider({ ...settings, clients: [clientOf(all, ["", "/second"])] });
  const secretFile = join(scratch(), "secret");
  writeFileSync(secretFile, `${SECRET}\n`);
  file = join(scratch(), "providers.json");
  const entry = (name: string, { issuer }: typeof provider) => ({
    ...{ name, title: `The ${name}`, issuer, client_id: "app", client_secret_file: secretFile, scopes: ["email"] },
    ...{ claims: { email: "email" }, require: { email_verified: true } },
  });
  writeFileSync(file, JSON.stringify({ providers: [entry("first", provider), entry("second", other)] }));
  const env = { OIDC_ISSUER: provider.issuer, OIDC_CLIENT_ID: "app", OIDC_CLIENT_SECRET_FILE: secretFile };
  [service, both] = await Promise.all([
    startService({ ...env, PORT: String(port) }),
    startService({ SIGN_IN_PROVIDERS_FILE: file, PORT: String(second) }),
  ]);
});
afterAll(async () => {
  await service?.stop();
  await both?.stop();
  provider?.stop();
  other?.stop();
});

const loginAt = ({ publicUrl }: Service, query = "") => `${publicUrl}/v1/auth/login?return_to=/healthz${query}`;

async function sessionsOf(at: Service, subject: string) {
  const caller = openAdmin(at);
  const { sessions } = message(await caller.call(admin.listSessions, { subject }, bearer(at.adminToken)));
  caller.close();
  return sessions;
}

async function claimsOf({ jar }: ReturnType<typeof openBrowser>, at: Service) {
  const cookie = `refresh_token=${jar.get("refresh_token")}`;
  const response = await fetch(`${at.publicUrl}/v1/auth/refresh`, { method: "POST", headers: { cookie } });
  const { data } = (await response.json()) as { data: { accessToken: string } };
  for (const one of response.headers.getSetCookie()) {
    const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(one) ?? [];
    jar.set(name, value);
  }
  return decodeJwt(data.accessToken);
}

async function signOutAtProvider({ send }: ReturnType<typeof openBrowser>) {
  const page = await send(`${provider.issuer}/session/end`);
  const [, action = ""] = /action="([^"]+)"/.exec(page.text) ?? [];
  const [, xsrf = ""] = /name="xsrf" value="([^"]+)"/.exec(page.text) ?? [];
  await send(action, { xsrf, logout: "yes" });
}

const loginsOf = ({ jar }: ReturnType<typeof openBrowser>) =>
  [...jar.keys()].filter((name) => name.startsWith("login-"));

describe("one provider", () => {
  test("a login ends at its destination with a session of the user", async () => {
    const browser = openBrowser();
    const end = await browser.signIn(loginAt(service), "alice");
    expect(end).toMatchObject({ url: `${service.publicUrl}/healthz`, status: 200 });
    expect(loginsOf(browser)).toEqual([]);
    const [session] = await sessionsOf(service, "alice");
    expect(session?.client).toMatchObject({ userAgent: "a browser", ipAddress: "127.0.0.1" });
    expect(await claimsOf(browser, service)).toMatchObject({ sub: "alice", sid: session?.sessionId });
  });

  test("another login replaces the session of the browser", async () => {
    const browser = openBrowser();
    await browser.signIn(loginAt(service), "bob");
    await browser.signIn(loginAt(service), "bob");
    expect(await sessionsOf(service, "bob")).toHaveLength(1);
  });

  test("a second authentication elevates the same session", async () => {
    const browser = openBrowser();
    await browser.signIn(loginAt(service), "carol");
    const before = await claimsOf(browser, service);
    const end = await browser.signIn(loginAt(service, "&prompt=login&max_age=0"), "carol");
    expect(end.status).toBe(200);
    const after = await claimsOf(browser, service);
    expect(after.sid).toBe(before.sid);
    expect(after.auth_time).toBeGreaterThanOrEqual(Number(before.auth_time ?? 0));
  });

  test("a second authentication as another user is a new session", async () => {
    const browser = openBrowser();
    await browser.signIn(loginAt(service), "carl");
    browser.jar.delete("_session");
    await browser.signIn(loginAt(service, "&prompt=login&max_age=0"), "dora");
    expect(await claimsOf(browser, service)).toMatchObject({ sub: "dora" });
    expect(await sessionsOf(service, "carl")).toEqual([]);
  });

  test("a session ends when the provider's does, also after a step-up", async () => {
    const browser = openBrowser();
    const soon = Math.floor(Date.now() / 1000) + 3_600;
    ends.set("ella", soon);
    await browser.signIn(loginAt(service), "ella");
    const before = await claimsOf(browser, service);
    /** The session ends at this time, but for as long as its creation took. */
    const expectEnd = async (seconds: number) => {
      const [session, ...others] = await sessionsOf(service, "ella");
      expect(others).toEqual([]);
      expect(Math.abs(Number(session?.absoluteExpireTime?.seconds) - seconds)).toBeLessThan(60);
    };
    await expectEnd(soon);
    await browser.signIn(loginAt(service, "&prompt=login&max_age=0"), "ella");
    expect((await claimsOf(browser, service)).sid).toBe(before.sid);
    // The provider's session is shorter now than the session of the browser can be.
    ends.set("ella", soon - 1_800);
    await browser.signIn(loginAt(service, "&prompt=login&max_age=0"), "ella");
    expect((await claimsOf(browser, service)).sid).not.toBe(before.sid);
    await expectEnd(soon - 1_800);
  });

  test("a login whose session the provider has ended already is over", async () => {
    const browser = openBrowser();
    ends.set("emil", Math.floor(Date.now() / 1000) - 1);
    const end = await browser.signIn(loginAt(service), "emil");
    expect(end).toMatchObject({ status: 400 });
    expect(end.text).toContain("The provider has ended it already");
    expect(await sessionsOf(service, "emil")).toEqual([]);
  });

  test("a login whose end cannot be read is a response that cannot be verified", async () => {
    const browser = openBrowser();
    ends.set("enno", "1900000000");
    const end = await browser.signIn(loginAt(service), "enno");
    expect(end).toMatchObject({ status: 403 });
    expect(end.text).toContain("The response of the provider could not be verified");
    await waitFor(service, () => service.stderr().includes('"reason":"malformed:session_expiry"') || undefined);
    expect(await sessionsOf(service, "enno")).toEqual([]);
  });

  test("a provider that does not satisfy acr_values leads to a page, not to another login", async () => {
    const browser = openBrowser();
    const end = await browser.signIn(loginAt(service, "&acr_values=gold"), "erin");
    expect(end).toMatchObject({ status: 403 });
    expect(end.text).toContain("A stronger sign-in is needed");
    expect(await sessionsOf(service, "erin")).toEqual([]);
  });

  test("sign-out ends the session, and then that of the provider", async () => {
    const browser = openBrowser();
    await browser.signIn(loginAt(service), "frank");
    const end = await browser.send(`${service.publicUrl}/v1/auth/sign-out`);
    expect(end.url).toMatch(`${provider.issuer}/session/end`);
    expect(browser.jar.has("refresh_token")).toBe(false);
    expect(await sessionsOf(service, "frank")).toEqual([]);
  });

  test("a user who signs out at the provider is signed out here, and another login of the user stays", async () => {
    const [browser, other] = [openBrowser(), openBrowser()];
    await browser.signIn(loginAt(service), "frank");
    await other.signIn(loginAt(service), "frank");
    expect(await sessionsOf(service, "frank")).toHaveLength(2);
    await signOutAtProvider(browser);
    await until(async () => expect(await sessionsOf(service, "frank")).toHaveLength(1));
    expect(await claimsOf(other, service)).toMatchObject({ sub: "frank" });
  });

  test("so is one who has authenticated again in another session of the provider", async () => {
    const browser = openBrowser();
    await browser.signIn(loginAt(service), "fred");
    browser.jar.delete("_session");
    await browser.signIn(loginAt(service, "&prompt=login&max_age=0"), "fred");
    expect(await sessionsOf(service, "fred")).toHaveLength(1);
    await signOutAtProvider(browser);
    await until(async () => expect(await sessionsOf(service, "fred")).toEqual([]));
  });

  test("another site cannot sign a user out", async () => {
    const browser = openBrowser();
    await browser.signIn(loginAt(service), "grace");
    const url = `${service.publicUrl}/v1/auth/sign-out`;
    for (const header of [{ "sec-fetch-site": "cross-site" }, { "sec-purpose": "prefetch" }]) {
      expect((await browser.send(url, undefined, header)).status).toBeGreaterThanOrEqual(400);
    }
    expect(await sessionsOf(service, "grace")).toHaveLength(1);
  });

  test("a destination elsewhere is refused before the provider is asked", async () => {
    for (const path of ["login", "sign-out"]) {
      const url = `${service.publicUrl}/v1/auth/${path}?return_to=//evil.example`;
      expect(await openBrowser().send(url)).toMatchObject({ status: 400, url });
    }
    const twice = await openBrowser().send(loginAt(service, "&return_to=/other"));
    expect(twice.status).toBe(400);
  });

  test("pages have a strict policy and no script", async () => {
    const { headers, text } = await openBrowser().send(loginAt(service, "&prompt=unknown"));
    expect(headers.get("content-security-policy")).toMatch(/^default-src 'none'; style-src 'sha256-/);
    expect(headers.get("cache-control")).toBe("no-store");
    expect(text).not.toContain("<script");
  });

  test("requests that only look change nothing", async () => {
    const head = await fetch(loginAt(service), { method: "HEAD", redirect: "manual" });
    expect([head.status, head.headers.get("allow")]).toEqual([405, "GET, OPTIONS"]);
  });
});

/** Signs in, but keeps the URL of the callback instead of following it. */
async function callbackUrl(browser: ReturnType<typeof openBrowser>, at: Service, name: string, query = "") {
  let caught = "";
  const { send } = browser;
  const page = await send(loginAt(at, query));
  const [, action = ""] = /action="([^"]+)"/.exec(page.text) ?? [];
  const saved = new Map([...browser.jar].filter(([key]) => key.startsWith("login-")));
  for (const key of saved.keys()) browser.jar.delete(key);
  const consent = await send(action, { prompt: "login", login: name, password: "any" });
  const [, next = ""] = /action="([^"]+)"/.exec(consent.text) ?? [];
  const end = await send(next, { prompt: "consent" });
  caught = end.url;
  expect(end.status).toBe(400);
  return { url: caught, saved };
}

describe("cookies of several scopes and systems", () => {
  const namesOf = (response: Response) => response.headers.getSetCookie().sort();
  const signOutAt = (at: Service, header: string) =>
    fetch(`${at.publicUrl}/v1/auth/sign-out`, { headers: { cookie: header }, redirect: "manual" });
  const logOutAt = (at: Service, header: string) =>
    fetch(`${at.publicUrl}/v1/auth/logout`, { method: "POST", headers: { cookie: header } });
  const tokenOf = async (at: Service, subject: string) => (await logIn(at, { subject })).refreshToken;

  test("sign-out removes every cookie that a logout removes, those of another system among them", async () => {
    const migrating = await startService({
      ...{ OIDC_ISSUER: provider.issuer, OIDC_CLIENT_ID: "app", SESSION_HINT_COOKIE: "hint" },
      ...{ MIGRATE_COOKIES: "connect.sid", MIGRATE_URL: "http://127.0.0.1:1/migrate" },
    });
    const name = somebody();
    const two = async () =>
      `refresh_token=${await tokenOf(migrating, name)}; refresh_token=${await tokenOf(migrating, name)}`;
    for (const more of [
      "",
      "; connect.sid=old",
      "; refresh_token_device=a",
      "; __Host-connect.sid=old; connect.sid=old",
    ]) {
      const logout = await logOutAt(migrating, (await two()) + more);
      const signOut = await signOutAt(migrating, (await two()) + more);
      expect([logout.status, signOut.status]).toEqual([200, 303]);
      expect(namesOf(signOut)).toEqual(namesOf(logout));
      expect(namesOf(signOut).some((line) => line.startsWith("connect.sid=;"))).toBe(more.includes("connect"));
    }
    expect(await sessionsOf(migrating, name)).toEqual([]);
    // A browser whose session has ended already would otherwise be signed in again by its old cookie.
    expect(namesOf(await signOutAt(migrating, "connect.sid=old")).join()).toContain("connect.sid=; Path=/;");
    await migrating.stop();
  });

  test("sign-out with the cookies of two users says that nobody is signed out, and succeeds when it is repeated", async () => {
    const [own, planted] = [somebody(), somebody()];
    const token = await tokenOf(service, own);
    const refused = await signOutAt(
      service,
      `refresh_token=${await tokenOf(service, planted)}; refresh_token=${token}`,
    );
    expect(refused.status).toBe(403);
    expect(await refused.text()).toContain('href="/v1/auth/sign-out"');
    expect([await sessionsOf(service, own), await sessionsOf(service, planted)].map(({ length }) => length)).toEqual([
      1, 1,
    ]);
    // The cookie in the present scope stays, and those in all other scopes go.
    const removed = namesOf(refused).map((line) => /^refresh_token=; Path=([^;]+);/.exec(line)?.[1]);
    expect(removed).toEqual(["/", "/v1"]);
    expect((await signOutAt(service, `refresh_token=${token}`)).status).toBe(303);
    expect(await sessionsOf(service, own)).toEqual([]);
  });

  test("sign-out on the page of a former user ends nothing of the user who has signed in since", async () => {
    const [former, present] = [await logIn(service, {}), await logIn(service, {})];
    const cookie = `refresh_token=${present.refreshToken}`;
    const signOutOf = (sid: string, more = "") =>
      fetch(`${service.publicUrl}/v1/auth/sign-out?return_to=/healthz&session_id=${sid}${more}`, {
        headers: { cookie },
        redirect: "manual",
      });
    const stays = await signOutOf(former.sid);
    expect([stays.status, stays.headers.get("location")]).toEqual([303, `${service.publicUrl}/healthz`]);
    expect(stays.headers.getSetCookie()).toEqual([]);
    expect((await signOutOf(present.sid, "&session_id=")).status).toBe(400);
    expect(await sessionsOf(service, present.subject)).toHaveLength(1);
    const ended = await signOutOf(present.sid);
    expect(ended.headers.get("location")).toMatch(`${provider.issuer}/session/end`);
    expect(await sessionsOf(service, present.subject)).toEqual([]);
    expect(await sessionsOf(service, former.subject)).toHaveLength(1);
  });

  test("sign-out of a session that is bound to a key ends nothing, and says who can end it", async () => {
    const { subject, refreshToken } = await logIn(service, { dpopJkt: "A".repeat(43) });
    const refused = await signOutAt(service, `refresh_token=${refreshToken}`);
    expect([refused.status, refused.headers.getSetCookie()]).toEqual([403, []]);
    expect(await refused.text()).toContain("or the session needs a key");
    expect(await sessionsOf(service, subject)).toHaveLength(1);
  });

  /** Returns a browser that sends the cookies of two sessions of a user, and the ids of these: first an ended or an older one. */
  async function withTwoSessions(name: string, former: "ended" | "older") {
    const [first, browser] = [openBrowser(), openBrowser()];
    const [older, newer] = [
      await first.signIn(loginAt(service), name).then(() => claimsOf(first, service)),
      await browser.signIn(loginAt(service), name).then(() => claimsOf(browser, service)),
    ];
    if (former === "ended") {
      const caller = openAdmin(service);
      message(await caller.call(admin.revokeSession, { sessionId: String(older.sid) }, bearer(service.adminToken)));
      caller.close();
    }
    browser.jar.set(
      "refresh_token",
      `${first.jar.get("refresh_token")}; refresh_token=${browser.jar.get("refresh_token")}`,
    );
    return { browser, older: String(older.sid), newer: String(newer.sid) };
  }
  const idsOf = async (name: string) => (await sessionsOf(service, name)).map(({ sessionId }) => sessionId);

  describe.each(["ended", "older"] as const)(
    "with the cookie of an %s session before that of the present one",
    (former) => {
      test("a second authentication elevates the present session", async () => {
        const name = somebody();
        const { browser, newer } = await withTwoSessions(name, former);
        const end = await browser.signIn(loginAt(service, "&prompt=login&max_age=0"), name);
        expect(end.status).toBe(200);
        expect((await claimsOf(browser, service)).sid).toBe(newer);
        expect(await idsOf(name)).toEqual([newer]);
      });

      test("another login replaces the present session", async () => {
        const name = somebody();
        const { browser, newer } = await withTwoSessions(name, former);
        await browser.signIn(loginAt(service), name);
        expect(await idsOf(name)).not.toContain(newer);
      });

      test("sign-out also ends the session of the provider", async () => {
        const name = somebody();
        const { browser } = await withTwoSessions(name, former);
        const end = await browser.send(`${service.publicUrl}/v1/auth/sign-out`);
        expect(end.url).toMatch(`${provider.issuer}/session/end`);
        expect(await idsOf(name)).toEqual([]);
      });
    },
  );

  test("a login removes cookies of other scopes, whose users would be ambiguous beside the new one", async () => {
    const { url, saved } = await callbackUrl(openBrowser(), service, "heidi");
    const earlier = async () => `refresh_token=${await tokenOf(service, somebody())}`;
    const cookies = [await earlier(), await earlier(), ...[...saved].map(([name, value]) => `${name}=${value}`)].join(
      "; ",
    );
    const lines = namesOf(await fetch(url, { headers: { cookie: cookies }, redirect: "manual" }));
    const scopes = lines.map((line) => /^refresh_token=(.?).*?; Path=([^;]+);/.exec(line)?.slice(1));
    expect(scopes.filter((scope) => scope !== undefined)).toEqual([
      ["", "/"],
      ["", "/v1"],
      ["A", "/v1/auth"],
    ]);
  });
});

describe("attacks", () => {
  test("a callback of another browser creates no session", async () => {
    const { url } = await callbackUrl(openBrowser(), service, "mia");
    const victim = openBrowser();
    await victim.send(loginAt(service));
    const end = await victim.send(url);
    expect(end).toMatchObject({ status: 400 });
    expect(victim.jar.has("refresh_token")).toBe(false);
    expect(await sessionsOf(service, "mia")).toEqual([]);
  });

  test("a code that is put into the login of another browser is refused", async () => {
    const { url } = await callbackUrl(openBrowser(), service, "nora");
    const attacker = openBrowser();
    const own = await callbackUrl(attacker, service, "olaf");
    for (const [name, value] of own.saved) attacker.jar.set(name, value);
    const injected = new URL(own.url);
    injected.searchParams.set("code", new URL(url).searchParams.get("code") ?? "");
    expect((await attacker.send(injected.href)).status).toBe(400);
    expect(await sessionsOf(service, "nora")).toEqual([]);
    expect(await sessionsOf(service, "olaf")).toEqual([]);
  });

  test("a callback that comes twice creates one session", async () => {
    const browser = openBrowser();
    const { url, saved } = await callbackUrl(browser, service, "pia");
    const results = [];
    for (let time = 0; time < 2; time++) {
      for (const [name, value] of saved) browser.jar.set(name, value);
      results.push((await browser.send(url)).status);
    }
    expect(results).toEqual([200, 400]);
    expect(await sessionsOf(service, "pia")).toHaveLength(1);
  });

  test("a changed, copied or planted cookie is refused", async () => {
    const browser = openBrowser();
    const { url, saved } = await callbackUrl(browser, service, "quin");
    const [[name, value] = ["", ""]] = saved;
    const middle = value.length >> 1;
    const changed = value.slice(0, middle) + (value[middle] === "A" ? "B" : "A") + value.slice(middle + 1);
    for (const cookie of [
      `${name}=${changed}`,
      `${name}=`,
      `login-${"a".repeat(16)}=${value}`,
      `${name}=${value}; ${name}=x`,
    ]) {
      const response = await fetch(url, { headers: { cookie }, redirect: "manual" });
      expect([response.status, response.headers.get("location")]).toEqual([400, null]);
    }
    expect(await sessionsOf(service, "quin")).toEqual([]);
  });

  test("a response of one provider is not taken for that of another", async () => {
    const browser = openBrowser();
    const { url, saved } = await callbackUrl(browser, both, "rosa", "&provider=first");
    for (const mixed of [url.replace("/first", "/second"), url.replace("/first", ""), `${url}&iss=x`]) {
      for (const [name, value] of saved) browser.jar.set(name, value);
      expect((await browser.send(mixed)).status).toBe(403);
    }
    expect(await sessionsOf(both, "first:rosa")).toEqual([]);
  });

  test("a browser keeps four logins in progress, the newest", async () => {
    const browser = openBrowser();
    for (let tab = 0; tab < 6; tab++) await browser.send(loginAt(service));
    expect(loginsOf(browser)).toHaveLength(4);
  });

  test("oversized parameters are refused", async () => {
    for (const query of [
      `&acr_values=${"a".repeat(256)}`,
      "&max_age=1e9",
      "&max_age=-1",
      `&provider=${"a".repeat(9_000)}`,
    ]) {
      expect((await openBrowser().send(loginAt(service, query))).status).toBe(400);
    }
    const state = await fetch(`${service.publicUrl}/v1/auth/callback?state=${"a".repeat(9_000)}&code=x`);
    expect(state.status).toBe(400);
  });
});

describe("several providers", () => {
  test("the user chooses one, and subjects are apart", async () => {
    const browser = openBrowser();
    const choice = await browser.send(loginAt(both));
    expect(choice.status).toBe(200);
    const links = [...choice.text.matchAll(/href="([^"]+)"/g)].map(([, href = ""]) => href.replaceAll("&#38;", "&"));
    expect(links).toHaveLength(2);
    expect(choice.text).toContain("The second");
    const end = await browser.signIn(new URL(links[1] ?? "", both.publicUrl).href, "alice");
    expect(end).toMatchObject({ url: `${both.publicUrl}/healthz`, status: 200 });
    expect(await claimsOf(browser, both)).toMatchObject({ sub: "second:alice", email: "alice@example.com" });
  });

  test("a user whose claims do not satisfy the requirements gets a page and no session", async () => {
    const end = await openBrowser().signIn(loginAt(both, "&provider=first"), "mallory");
    expect(end.status).toBe(403);
    expect(end.text).toContain("You have no access");
    expect(await sessionsOf(both, "first:mallory")).toEqual([]);
    await waitFor(both, () => both.stderr().includes("requirement:email_verified") || undefined);
  });
});

test("a provider that is down is a page with 503, and works again afterwards", async () => {
  other.setDown(true);
  const fresh = await startService({
    PORT: String(third),
    OIDC_ISSUER: other.issuer,
    OIDC_CLIENT_ID: "app",
    OIDC_CLIENT_SECRET: SECRET,
  });
  const down = await openBrowser().send(`${fresh.publicUrl}/v1/auth/login`);
  expect([down.status, down.headers.get("retry-after")]).toEqual([503, "5"]);
  other.setDown(false);
  const up = await fetch(`${fresh.publicUrl}/v1/auth/login`, { redirect: "manual" });
  expect(up.status).toBe(303);
  expect(up.headers.get("location")).toMatch(other.issuer);
  await fresh.stop();
});

test("a changed file is in force at once, and a broken one changes nothing", async () => {
  const { providers } = JSON.parse(readFileSync(file, "utf8"));
  writeFileSync(file, "{}");
  await waitFor(both, () => both.stderr().includes("sign_in_providers_refused") || undefined);
  expect((await openBrowser().send(loginAt(both))).text).toContain("The second");
  writeFileSync(file, JSON.stringify({ providers: [providers[0], { ...providers[1], title: "Another name" }] }));
  await waitFor(both, () => both.stderr().includes("sign_in_providers_changed") || undefined);
  expect((await openBrowser().send(loginAt(both))).text).toContain("Another name");
});
