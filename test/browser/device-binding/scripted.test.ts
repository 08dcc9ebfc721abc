/** Device binding by script in browsers that do not bind by themselves, against the real service. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Engine, startChromium, type Tab } from "../engines/driver.ts";
import { startFirefox } from "../engines/firefox.ts";
import type { Origin } from "../engines/origin.ts";
import { eventually, isToken, openPage, statesOf, tokenOf } from "../engines/pages.ts";
import { type Bed, LIFE_MS, passTime, pathsOf, REFRESH, REGISTER, RENEW, startBed } from "./bed.ts";

/** The life of access tokens. It is short, so that pages refresh often. */
const TOKEN_TTL_S = 3;

describe.each([
  ["Chromium", (origin: Origin) => startChromium(origin.authority)],
  ["Firefox", (origin: Origin) => startFirefox(origin.authority)],
])("%s", (_name, start) => {
  let bed: Bed;
  let engine: Engine;
  let page: Tab;
  /** Returns the origin with the URL of its other pages, in which the kit binds the session to a key by script. */
  const scripted = () => ({ ...bed.origin, url: `${bed.origin.url}/scripted` });
  beforeAll(async () => {
    bed = await startBed({ ACCESS_TOKEN_TTL: `${TOKEN_TTL_S}s` });
    engine = await start(bed.origin);
    await engine.open(`${bed.origin.url}/login?subject=alice`);
    page = await openPage(engine, scripted());
  });
  afterAll(async () => {
    await engine?.close();
    await bed?.stop();
  });

  const isBound = (tab: Tab) => tab.evaluate<boolean>("session.snapshot.claims?.device_bound === true");

  /** Returns whether the token was issued for a request with a fresh device cookie. */
  const proven = (tab: Tab) =>
    eventually(
      async () => isToken(await tokenOf(tab)) && (await isBound(tab)),
      (yes) => yes,
    );

  /** Returns the cookies that a thief has copied. */
  async function copyCookies(): Promise<string> {
    bed.seen.length = 0;
    await page.evaluate("fetch('/v1/auth/sessions').then((r) => r.status)");
    const { cookie } = (await eventually(
      () => bed.seen.find(({ path }) => path === "/v1/auth/sessions"),
      (found) => found !== undefined,
    )) as { cookie: string };
    return cookie;
  }

  const steal = (path: string, cookie: string, headers: Readonly<Record<string, string>> = {}) =>
    fetch(`${bed.origin.service.publicUrl}${path}`, {
      method: "POST",
      headers: { cookie, "x-forwarded-proto": "https", "x-forwarded-for": "203.0.113.9", ...headers },
    });

  test("the session is bound some seconds after the page has found it", async () => {
    await proven(page);
    expect(pathsOf(bed.seen).filter((path) => path === REGISTER)).toHaveLength(1);
    expect(bed.audit({ subject: "alice" })).toEqual(expect.arrayContaining(["device_registered", "device_bound"]));
  });

  test("a page that is loaded after one life renews first", async () => {
    await passTime(bed, LIFE_MS);
    bed.seen.length = 0;
    await page.close();
    page = await openPage(engine, scripted());
    await proven(page);
    const paths = pathsOf(bed.seen);
    expect(paths.slice(paths.indexOf(RENEW)).filter((path) => path !== RENEW)[0]).toBe(REFRESH);
    expect(bed.audit({ subject: "alice" })).not.toContain("device_proof_missing");
  });

  test("a copy of all cookies is refused after one life, and the page goes on", async () => {
    const cookie = await copyCookies();
    await passTime(bed, LIFE_MS);
    for (let attempt = 0; attempt < 3; attempt++) expect((await steal(REFRESH, cookie)).status).not.toBe(200);
    const renewal = await steal(RENEW, cookie);
    expect([renewal.status, renewal.headers.has("set-cookie")]).toEqual([403, false]);
    expect(bed.audit({ subject: "alice" })).toContain("device_proof_missing");
    await proven(page);
    expect(await statesOf(page)).not.toContain("ended");
    expect(bed.audit({ subject: "alice" })).not.toContain("session_ended");
  });

  test("several tabs go on with one key", async () => {
    const tabs = await Promise.all([1, 2, 3].map(() => openPage(engine, scripted())));
    await passTime(bed, LIFE_MS);
    for (const tab of [page, ...tabs]) await proven(tab);
    expect(bed.audit({ subject: "alice" })).not.toContain("device_key_refused");
    for (const tab of [page, ...tabs]) expect(await statesOf(tab)).not.toContain("ended");
  });

  test("broken renewals are offline, and the session goes on after them", async () => {
    bed.origin.isFaulty = (path) => path === RENEW;
    bed.origin.fault = "cut";
    const reloaded = await openPage(engine, scripted());
    await page.close();
    page = reloaded;
    await eventually(
      () => pathsOf(bed.seen).filter((path) => path === RENEW).length,
      (renewals) => renewals > 0,
    );
    bed.origin.fault = "up";
    await page.evaluate("dispatchEvent(new Event('online'))");
    await proven(page);
    expect(await statesOf(page)).not.toContain("ended");
  });
});
