/** Pages that a browser keeps unchanged in its back/forward cache, and displays again later. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type Engine, startChromium, type Tab } from "./driver.ts";
import { startFirefox } from "./firefox.ts";
import { type Origin, startOrigin } from "./origin.ts";
import { becomes, eventually, isToken, openPage, signIn, statesOf, tokenOf } from "./pages.ts";
import { startWebKit } from "./webkit.ts";

/** Whether every scenario runs in every engine, as in `npm run test:browser`. */
const LONG = process.env.BROWSERS === "long";

describe.each([
  ["Chromium", (origin: Origin) => startChromium(origin.authority)],
  ["Firefox", (origin: Origin) => startFirefox(origin.authority)],
  ["WebKitGTK", () => startWebKit()],
])("%s", (name, start) => {
  let origin: Origin;
  let engine: Engine;
  beforeAll(async () => {
    // Tokens live so long that none has to be refreshed during a test.
    origin = await startOrigin({ ACCESS_TOKEN_TTL: "15m", SESSION_HINT_COOKIE: "signed_in" });
    engine = await start(origin);
  });
  afterAll(async () => {
    await engine?.close();
    await origin?.stop();
  });
  beforeEach(() => signIn(engine, origin).then(() => {}));
  afterEach(() => engine.reset());

  /** Opens a page, and then navigates from it to another page. */
  async function openAndLeave(path: string): Promise<Tab> {
    const tab = await openPage(engine, origin, path);
    expect(await tokenOf(tab)).toSatisfy(isToken);
    // Browsers do not keep a page that is still loading.
    await eventually(
      () => tab.evaluate("document.readyState"),
      (state) => state === "complete",
    );
    await tab.evaluate("globalThis.isKept = true");
    await tab.goto(`${origin.url}/other`);
    return tab;
  }

  /** Opens a page, leaves it, and comes back to it. A browser that is short of memory or time may load it again: then this is repeated. */
  async function comeBackTo(path: string): Promise<Tab> {
    for (let left = 5; left > 0; left--) {
      const tab = await openAndLeave(path);
      origin.refreshes = 0;
      await tab.back();
      await eventually(
        () => tab.evaluate("!!globalThis.session"),
        (isBack) => isBack === true,
      );
      if (await tab.evaluate<boolean>("globalThis.isKept === true")) return tab;
    }
    throw new Error(`${name} has loaded the page again each time`);
  }

  const returns: [string, string, number][] = [["with the hint cookie, without a request", "/", 0]];
  if (LONG || name === "Chromium") returns.push(["without it, by one refresh", "/plain", 1]);
  test.each(returns)("a page that comes back goes on: %s", async (_, path, requests) => {
    const tab = await comeBackTo(path);
    await eventually(
      () => origin.refreshes,
      (count) => count === requests,
    );
    // A page checks its session within half a second. If no request arrives within a second, the page sends none.
    const endMs = performance.now() + 1_000;
    await eventually(
      () => performance.now(),
      (nowMs) => nowMs >= endMs,
    );
    expect(origin.refreshes).toBe(requests);
    expect(new Set(await statesOf(tab))).toEqual(new Set(["active"]));
  });

  test.each(LONG || name === "Chromium" ? ["/", "/plain"] : ["/"])(
    "a page that comes back sees the logout that it missed: %s",
    async (path) => {
      const tab = await openAndLeave(path);
      const other = await openPage(engine, origin, path);
      await other.evaluate("session.end()");
      await tab.back();
      await eventually(
        () => tab.evaluate("!!globalThis.session"),
        (isBack) => isBack === true,
      );
      await becomes(tab, "ended");
    },
  );
});
