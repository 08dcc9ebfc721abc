/**
 * Device bound sessions in Chromium, which binds by itself: the scenarios of web-platform-tests'
 * `device-bound-session-credentials`, with the real service as their server.
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { admin, bearer, message, openAdmin } from "../../support/sessions.ts";
import { eventually } from "../engines/pages.ts";
import {
  type Bed,
  bound,
  DEVICE_COOKIE,
  deviceCookie,
  deviceCookieOf,
  LIFE_MS,
  passLife,
  passTime,
  pathsOf,
  REFRESH,
  REGISTER,
  RENEW,
  refreshIn,
  signIn,
  startBed,
  type User,
} from "./bed.ts";
import type { Profile } from "./profiles.ts";

/** The result that Chromium reports if the response to a registration is a further challenge. Chromium does not try again. */
const REFUSED = "RegistrationAttemptedChallenge";

let bed: Bed;
let profile: Profile;
let user: User;
beforeAll(async () => {
  bed = await startBed();
  profile = await bed.profile();
});
afterAll(() => bed?.stop());
beforeEach(() => {
  user = bed.user(profile);
  bed.seen.length = 0;
});
afterEach(() => {
  bed.origin.change = (headers) => headers;
  bed.origin.offersAtLogin = true;
});

const asAdmin = () => ({ client: openAdmin(bed.origin.service), headers: bearer(bed.origin.service.adminToken) });

/** Returns the only session of the user. */
async function sessionOf({ subject }: User) {
  const { client, headers } = asAdmin();
  const { sessions } = message(await client.call(admin.listSessions, { subject }, headers));
  return (sessions as { sessionId: string; deviceBinding?: { bound?: boolean; algorithm?: string } }[])[0];
}

const payloadOf = (proof = "") =>
  JSON.parse(Buffer.from(proof.replaceAll('"', "").split(".")[1] ?? "", "base64url").toString()) as Record<
    string,
    unknown
  >;

describe("registration", () => {
  test("a login binds the session with the first response", async () => {
    const tab = await signIn(user);
    const cookie = await deviceCookie(user);
    expect(cookie).toMatchObject({ httpOnly: true, secure: true, sameSite: "Lax", path: "/v1/auth" });
    expect(await refreshIn(tab)).toMatchObject({ status: 200, claims: { device_bound: true } });
    expect(await sessionOf(user)).toMatchObject({ deviceBinding: { bound: true, algorithm: "ES256" } });
  });

  test("refreshes at once register one key, and use up none of the signatures for renewals", async () => {
    bed.origin.offersAtLogin = false;
    const tab = await signIn(user);
    const all = Array.from({ length: 8 }, () => refreshIn(tab));
    for (const { status } of await Promise.all(all)) expect(status).toBe(200);
    await deviceCookie(user);
    await refreshIn(tab);
    expect(pathsOf(bed.seen).filter((path) => path === REGISTER)).toHaveLength(1);
    await passLife(user, bed);
    expect(await refreshIn(tab)).toMatchObject({ status: 200, claims: { device_bound: true } });
  });

  test("a session from before moves over with a refresh", async () => {
    bed.origin.offersAtLogin = false;
    const tab = await signIn(user);
    expect(await deviceCookieOf(user)).toBeUndefined();
    expect((await refreshIn(tab)).claims).not.toHaveProperty("device_bound");
    await deviceCookie(user);
    expect(await refreshIn(tab)).toMatchObject({ status: 200, claims: { device_bound: true } });
  });

  test("is the browser's, also in a page that binds by script where browsers do not", async () => {
    bed.origin.offersAtLogin = false;
    await signIn(user);
    const page = await profile.open(`${user.url}/scripted`);
    // Some seconds after the offer to register a key, the script of the kit checks whether the browser already has a device cookie.
    await eventually(
      () => bed.seen.find(({ path, proof }) => path === RENEW && proof === undefined),
      (found) => found !== undefined,
    );
    expect(await refreshIn(page)).toMatchObject({ status: 200, claims: { device_bound: true } });
    expect(pathsOf(bed.seen).filter((path) => path === REGISTER)).toHaveLength(1);
    expect(bed.audit(user)).not.toContain("device_key_refused");
    await page.close();
  });

  test("by a challenge that is refused is offered again with the next refresh", async () => {
    bed.origin.change = (headers, path) =>
      path === "/login" ? { ...headers, ...offerWith(headers, 'challenge="foreign"') } : headers;
    const tab = await signIn(user);
    await eventually(
      () => profile.events,
      (events) => events.some(({ creationEventDetails }) => creationEventDetails?.fetchResult === REFUSED),
    );
    expect(await deviceCookieOf(user)).toBeUndefined();
    await refreshIn(tab);
    await deviceCookie(user);
    expect(pathsOf(bed.seen)).toEqual([REGISTER, REFRESH, REGISTER]);
  });

  test("carries the authorization of an offer that has one", async () => {
    bed.origin.change = (headers, path) =>
      path === "/login" ? { ...headers, ...offerWith(headers, '$&;authorization="code"') } : headers;
    await signIn(user);
    await deviceCookie(user);
    expect(payloadOf(bed.seen[0]?.proof)).toMatchObject({ authorization: "code" });
  });
});

/** Returns the header that offers registration, with its challenge replaced. */
function offerWith(headers: Readonly<Record<string, unknown>>, challenge: string) {
  const offer = String(headers["secure-session-registration"]);
  return { "secure-session-registration": offer.replace(/challenge="[^"]*"/, challenge) };
}

describe("renewal", () => {
  test("precedes a refresh without a device cookie, in one request by the challenge before", async () => {
    const tab = await bound(user, bed);
    for (let life = 0; life < 2; life++) {
      await passLife(user, bed);
      expect(await refreshIn(tab)).toMatchObject({ status: 200, claims: { device_bound: true } });
    }
    expect(pathsOf(bed.seen)).toEqual([RENEW, REFRESH, RENEW, REFRESH]);
    expect(bed.seen[0]?.cookie).not.toContain(`${DEVICE_COOKIE}=`);
  });

  test("asks for a challenge when the one before is too old", async () => {
    const tab = await bound(user, bed);
    await passLife(user, bed, 3 * LIFE_MS);
    expect(await refreshIn(tab)).toMatchObject({ status: 200 });
    expect(pathsOf(bed.seen)).toEqual([RENEW, RENEW, REFRESH]);
  });

  test("follows a refresh with a device cookie that the browser keeps too long, since its clock was set back", async () => {
    const tab = await bound(user, bed);
    await passTime(bed, LIFE_MS);
    expect(await refreshIn(tab)).toMatchObject({ status: 503, code: "E503_UNAVAILABLE" });
    expect(await refreshIn(tab)).toMatchObject({ status: 200, claims: { device_bound: true } });
    expect(pathsOf(bed.seen)).toEqual([REFRESH, RENEW, REFRESH]);
  });

  test("is one for twenty refreshes at once", async () => {
    const tab = await bound(user, bed);
    await passLife(user, bed);
    const statuses = await tab.evaluate<number[]>(
      `Promise.all(Array.from({ length: 20 }, () => fetch("${REFRESH}", { method: "POST" }).then((r) => r.status)))`,
    );
    expect(statuses).toEqual(Array.from({ length: 20 }, () => 200));
    expect(pathsOf(bed.seen).filter((path) => path === RENEW)).toHaveLength(1);
  });

  test("goes on after the browser was restarted", async () => {
    await bound(user, bed);
    await profile.restart();
    await passLife(user, bed);
    const tab = await profile.open(`${user.url}/other`);
    expect(await refreshIn(tab)).toMatchObject({ status: 200, claims: { device_bound: true } });
    expect(pathsOf(bed.seen).filter((path) => path !== REFRESH)).toEqual([RENEW, RENEW]);
  });

  test("ends what the browser has of a session that was unbound, which is then bound anew", async () => {
    const tab = await bound(user, bed);
    const { client, headers } = asAdmin();
    const { sessionId } = (await sessionOf(user)) as { sessionId: string };
    message(await client.call(admin.unbindDevice, { sessionId }, headers));
    await passLife(user, bed);
    expect(await refreshIn(tab)).toMatchObject({ status: 200 });
    await eventually(
      () => pathsOf(bed.seen),
      (paths) => paths.includes(REGISTER),
    );
    await deviceCookie(user);
    expect(await refreshIn(tab)).toMatchObject({ status: 200, claims: { device_bound: true } });
  });

  test("ends what the browser has of a session that was revoked, and a new login is bound", async () => {
    const tab = await bound(user, bed);
    await bed.origin.revoke(user.subject);
    await passLife(user, bed);
    expect(await refreshIn(tab)).toMatchObject({ status: 401, code: "E001_AUTH_FAILURE" });
    await profile.deleteCookie(DEVICE_COOKIE, user.host);
    bed.seen.length = 0;
    const again = await bound(user, bed);
    expect(await refreshIn(again)).toMatchObject({ status: 200, claims: { device_bound: true } });
  });

  test("takes over a changed configuration of the service", async () => {
    const tab = await bound(user, bed);
    await bed.restartService({ COOKIE_SAMESITE: "Strict" });
    await passLife(user, bed);
    expect(await refreshIn(tab)).toMatchObject({ status: 200 });
    expect(await deviceCookieOf(user)).toMatchObject({ sameSite: "Strict" });
    bed.seen.length = 0;
    expect(await refreshIn(tab)).toMatchObject({ status: 200, claims: { device_bound: true } });
    // The browser accepts the cookie with its new attributes, so it does not renew the cookie again.
    expect(pathsOf(bed.seen)).toEqual([REFRESH]);
    await bed.restartService({ COOKIE_SAMESITE: "Lax" });
  });
});

describe("the device cookie", () => {
  test.each([
    { cookie: "the same, and lives longer", change: {}, renewals: 0 },
    { cookie: "readable by scripts", change: { httpOnly: false }, renewals: 1 },
    { cookie: "of another SameSite", change: { sameSite: "Strict" as const }, renewals: 1 },
    { cookie: "of another path", change: { path: "/" }, renewals: 1 },
  ])("that is $cookie causes $renewals renewals", async ({ change, renewals }) => {
    const tab = await bound(user, bed);
    const cookie = await deviceCookie(user);
    await profile.deleteCookie(DEVICE_COOKIE, user.host);
    await profile.setCookies([{ ...cookie, expires: Date.now() / 1000 + 86_400, ...change }]);
    expect(await refreshIn(tab)).toMatchObject({ status: 200 });
    expect(pathsOf(bed.seen).filter((path) => path === RENEW)).toHaveLength(renewals);
  });
});

describe("the scope", () => {
  test("has refreshes only: pages and other requests never wait", async () => {
    const tab = await bound(user, bed);
    await passLife(user, bed);
    await tab.goto(`${user.url}/other`);
    await tab.evaluate(`fetch("/v1/auth/sessions").then((r) => r.status)`);
    await tab.evaluate(`fetch("/api").then((r) => r.status)`);
    expect(pathsOf(bed.seen)).toEqual(["/v1/auth/sessions"]);
  });

  test("has one origin: another host of the site causes no renewal", async () => {
    await bound(user, bed);
    await passLife(user, bed);
    const other = await profile.open(`https://other.${user.host}:${bed.origin.port}/other`);
    expect(await refreshIn(other)).toMatchObject({ status: 401 });
    expect(pathsOf(bed.seen)).toEqual([REFRESH]);
  });
});

describe("a user who deletes site data", () => {
  test("is signed out with the cookies, and the next login is bound", async () => {
    const tab = await bound(user, bed);
    await tab.evaluate(`fetch("/clear?what=cookies").then((r) => r.status)`);
    expect(await refreshIn(tab)).toMatchObject({ status: 401 });
    const again = await bound(user, bed);
    expect(await refreshIn(again)).toMatchObject({ status: 200, claims: { device_bound: true } });
  });

  test("has to sign in again when only the key is gone, since the session needs it", async () => {
    const tab = await bound(user, bed);
    await tab.evaluate(`fetch("/clear?what=storage").then((r) => r.status)`);
    await passLife(user, bed);
    expect(await refreshIn(tab)).toMatchObject({ status: 401, code: "E001_AUTH_FAILURE" });
    const again = await bound(user, bed);
    expect(await refreshIn(again)).toMatchObject({ status: 200, claims: { device_bound: true } });
  });
});
