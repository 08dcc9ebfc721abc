/** Tabs that are killed, frozen or taken offline, and services that stop. Only the protocol of Chromium can do all of this. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { type ChromiumEngine, type ChromiumTab, startChromium } from "./driver.ts";
import { type Origin, startOrigin } from "./origin.ts";
import {
  becomes,
  eventually,
  isToken,
  openPage,
  openPages,
  refreshesDue,
  signIn,
  statesOf,
  stepClock,
  tokenOf,
} from "./pages.ts";

/** Whether the tests run in their long form, as in `npm run test:browser`. */
const LONG = process.env.BROWSERS === "long";
const TABS = LONG ? 100 : 12;
const LIVES = LONG ? 10 : 2;
const TOKEN_TTL_S = LONG ? 60 : 3;
/** The average life of an access token. The service shortens each life at random by up to 20 %. */
const MEAN_LIFE_MS = TOKEN_TTL_S * 900;
const OFFLINE_MS = LONG ? 600_000 : 4_000;
const YEAR_MS = 365 * 86_400_000;

let origin: Origin;
let engine: ChromiumEngine;
beforeAll(async () => {
  origin = await startOrigin({ ACCESS_TOKEN_TTL: `${TOKEN_TTL_S}s`, SESSION_HINT_COOKIE: "signed_in" });
  engine = await startChromium(origin.authority);
});
afterAll(async () => {
  await engine?.close();
  await origin?.stop();
});
beforeEach(async () => {
  await signIn(engine, origin);
  origin.refreshes = 0;
});
afterEach(async () => {
  origin.fault = "up";
  await engine.reset();
});

const setFrozen = (tab: ChromiumTab, frozen: boolean) =>
  tab.devtools.send("Page.setWebLifecycleState", { state: frozen ? "frozen" : "active" });

test(`${TABS} tabs make no more than a refresh per token life, whichever are killed or frozen`, async () => {
  const startMs = performance.now();
  const tabs: ChromiumTab[] = [];
  for (let opened = 0; opened < TABS; opened += 4) tabs.push(...(await openPages(engine, origin, 4)));
  expect(await tokenOf(tabs[0] as ChromiumTab)).toSatisfy(isToken);
  // In each token life one of the remaining tabs is killed and another one frozen.
  for (let life = 0; life < LIVES; life++) {
    const [killed, frozen] = [tabs.pop() as ChromiumTab, tabs.pop() as ChromiumTab];
    await killed.close();
    await setFrozen(frozen, true);
    const endMs = startMs + (life + 1) * MEAN_LIFE_MS;
    await eventually(
      () => performance.now(),
      (nowMs) => nowMs >= endMs,
      MEAN_LIFE_MS,
    );
  }
  // The pages that open first may each refresh. Where lives are long, the greatest number leaves room for that.
  const allowed = (LONG ? 0 : 4) + refreshesDue(performance.now() - startMs, TOKEN_TTL_S);
  expect(origin.refreshes).toBeLessThanOrEqual(allowed);
  for (const tab of tabs) expect(await statesOf(tab)).not.toContain("ended");
});

test("a tab that is killed in mid-refresh holds nobody up", async () => {
  origin.fault = "held";
  const killed = await openPage(engine, origin);
  await eventually(
    () => origin.refreshes,
    (count) => count === 1,
  );
  await killed.close();
  const next = await openPage(engine, origin);
  origin.fault = "up";
  expect(await tokenOf(next)).toSatisfy(isToken);
  expect(origin.refreshes).toBeLessThanOrEqual(2);
});

test("a tab that is frozen in mid-refresh delays the others, and they share one refresh of their own", async () => {
  origin.fault = "held";
  const frozen = await openPage(engine, origin);
  await eventually(
    () => origin.refreshes,
    (count) => count === 1,
  );
  await setFrozen(frozen, true);
  origin.fault = "up";
  const others = await openPages(engine, origin, 5);
  for (const tab of others) expect(await tokenOf(tab)).toSatisfy(isToken);
  expect(origin.refreshes).toBeLessThan(5);
  await setFrozen(frozen, false);
  expect(await tokenOf(frozen)).toSatisfy(isToken);
});

test("a logout reaches a frozen tab when it wakes", async () => {
  const [frozen, here] = (await openPages(engine, origin, 2)) as [ChromiumTab, ChromiumTab];
  expect(await tokenOf(frozen)).toSatisfy(isToken);
  await setFrozen(frozen, true);
  await here.evaluate("session.end()");
  await setFrozen(frozen, false);
  await becomes(frozen, "ended");
});

test("a tab that was offline with a clock one year wrong makes one refresh after it comes back", async () => {
  const tab = await openPage(engine, origin);
  expect(await tokenOf(tab)).toSatisfy(isToken);
  await engine.setOffline(true);
  await stepClock(tab, YEAR_MS);
  const endMs = performance.now() + OFFLINE_MS;
  await eventually(
    () => tokenOf(tab),
    (reason) => reason === "unavailable" && performance.now() >= endMs,
    OFFLINE_MS,
  );
  const [before, backMs] = [origin.refreshes, performance.now()];
  await engine.setOffline(false);
  await becomes(tab, "active");
  expect(await tokenOf(tab)).toSatisfy(isToken);
  expect(origin.refreshes - before).toBeLessThanOrEqual(1 + refreshesDue(performance.now() - backMs, TOKEN_TTL_S));
  expect(await statesOf(tab)).not.toContain("ended");
});

test("a service that stops and starts again ends nothing", async () => {
  const tab = await openPage(engine, origin);
  expect(await tokenOf(tab)).toSatisfy(isToken);
  await origin.service.kill9();
  await eventually(
    () => tokenOf(tab),
    (reason) => reason === "unavailable",
    TOKEN_TTL_S * 1000,
  );
  origin.service = await origin.service.restart();
  await eventually(() => tokenOf(tab), isToken);
  expect(await statesOf(tab)).not.toContain("ended");
});

test("with the hint cookie an anonymous page makes no request, and a sign-in elsewhere wakes it", async () => {
  await engine.reset();
  const tab = await openPage(engine, origin);
  await becomes(tab, "ended");
  expect(origin.refreshes).toBe(0);
  const login = await signIn(engine, origin);
  await login.goto(origin.url);
  await becomes(tab, "active");
});
