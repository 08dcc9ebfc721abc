/** The kit in real browsers against the real service: tests that must pass in every engine. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type Engine, startChromium } from "./driver.ts";
import { startFirefox } from "./firefox.ts";
import { type Origin, startOrigin } from "./origin.ts";
import {
  becomes,
  callApi,
  eventually,
  isToken,
  openPage,
  openPages,
  refreshesDue,
  signIn,
  stateOf,
  statesOf,
  stepClock,
  tokenOf,
} from "./pages.ts";
import { startWebKit } from "./webkit.ts";

/**
 * Whether every browser engine runs every scenario, as in `npm run test:browser`. Otherwise a single engine runs all scenarios, and the
 * other engines only the first few.
 */
const LONG = process.env.BROWSERS === "long";
const TOKEN_TTL_S = 3;
const YEAR_MS = 365 * 86_400_000;

describe.each([
  ["Chromium", (origin: Origin) => startChromium(origin.authority)],
  ["Firefox", (origin: Origin) => startFirefox(origin.authority)],
  ["WebKitGTK", () => startWebKit()],
])("%s", (name, start) => {
  let origin: Origin;
  let engine: Engine;
  beforeAll(async () => {
    origin = await startOrigin({ ACCESS_TOKEN_TTL: `${TOKEN_TTL_S}s` });
    engine = await start(origin);
  });
  afterAll(async () => {
    await engine?.close();
    await origin?.stop();
  });
  beforeEach(async () => {
    await signIn(engine, origin);
    origin.refreshes = 0;
    origin.apiCalls.length = 0;
  });
  afterEach(async () => {
    origin.fault = "up";
    origin.refuseTokens = () => false;
    await engine.reset();
  });

  test("tabs share a token, and a logout in one ends all", async () => {
    const tabs = await openPages(engine, origin, 4);
    for (const tab of tabs) expect(await tokenOf(tab)).toSatisfy(isToken);
    expect(origin.refreshes).toBeLessThan(4);
    expect(await tabs[0]?.evaluate("session.end().then(() => 'out')")).toBe("out");
    for (const tab of tabs) await becomes(tab, "ended");
    expect(await tokenOf((await openPages(engine, origin, 1))[0] as (typeof tabs)[0])).toBe("ended");
  });

  test("a broken network is offline, and the session goes on after it", async () => {
    const tab = await openPage(engine, origin);
    expect(await tokenOf(tab)).toSatisfy(isToken);
    for (const fault of LONG ? (["cut", "html"] as const) : (["cut"] as const)) {
      origin.fault = fault;
      await eventually(
        () => tokenOf(tab),
        (token) => token === "unavailable",
      );
      expect(await stateOf(tab)).toBe("offline");
      origin.fault = "up";
      await tab.evaluate("dispatchEvent(new Event('online'))");
      await eventually(() => tokenOf(tab), isToken);
    }
    expect(await statesOf(tab)).not.toContain("ended");
  });

  test("a page that comes back sees the logout that it missed", async () => {
    const [away, here] = [await openPage(engine, origin), await openPage(engine, origin)];
    expect(await tokenOf(away)).toSatisfy(isToken);
    await away.goto(`${origin.url}/other`);
    await here.evaluate("session.end()");
    await away.back();
    await eventually(
      () => away.evaluate<string>("globalThis.session?.snapshot.state"),
      (state) => state === "ended",
    );
  });

  if (!LONG && name !== "Chromium") return;

  test("lost responses end nothing", async () => {
    const tab = await openPage(engine, origin);
    expect(await tokenOf(tab)).toSatisfy(isToken);
    for (let time = 0; time < 2; time++) {
      origin.fault = "lost";
      const before = origin.refreshes;
      await eventually(
        async () => void (await tokenOf(tab)),
        () => origin.refreshes > before,
      );
      origin.fault = "up";
      await eventually(() => tokenOf(tab), isToken);
    }
    expect(await statesOf(tab)).not.toContain("ended");
  });

  test("a wall clock that is wrong by a year, either way, ends nothing and costs one refresh at most", async () => {
    const tab = await openPage(engine, origin);
    for (const step of [YEAR_MS, -2 * YEAR_MS]) {
      expect(await tokenOf(tab)).toSatisfy(isToken);
      await stepClock(tab, step);
      const [before, startMs] = [origin.refreshes, performance.now()];
      expect(await tokenOf(tab)).toSatisfy(isToken);
      const due = refreshesDue(performance.now() - startMs, TOKEN_TTL_S);
      expect(origin.refreshes - before).toBeLessThanOrEqual(1 + due);
    }
    expect(await statesOf(tab)).not.toContain("ended");
  });

  test("a service that refuses every token causes one refresh, however often it is called", async () => {
    const tab = await openPage(engine, origin);
    const first = await tokenOf(tab);
    const before = origin.refreshes;
    origin.refuseTokens = () => true;
    const startedMs = performance.now();
    for (let call = 0; call < 10; call++) expect(await callApi(tab)).toBe(401);
    // On a slow machine tokens expire during the test. Each such token may cause two refreshes: one because it expires, and one because the
    // API refuses the new token.
    const due = refreshesDue(performance.now() - startedMs, TOKEN_TTL_S);
    expect(origin.refreshes - before).toBeLessThanOrEqual(1 + 2 * (due + 1));
    origin.refuseTokens = (token) => token === first;
    await eventually(
      () => callApi(tab),
      (status) => status === 200,
    );
  });

  test("a revocation by an operator ends the session with the next refresh", async () => {
    const tab = await openPage(engine, origin);
    expect(await tokenOf(tab)).toSatisfy(isToken);
    await origin.revoke("alice");
    await eventually(
      () => tokenOf(tab),
      (token) => token === "ended",
    );
  });
});
