/** `useSession`, rendered by React itself: on a server, hydrated in a browser, in Strict Mode, and unmounted. */
import { createElement } from "react";
import { renderToString } from "react-dom/server";
import { rolldown } from "rolldown";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { createSession } from "../../../src/browser/index.ts";
import { type ChromiumEngine, startChromium, type Tab } from "../engines/driver.ts";
import { type Origin, startOrigin } from "../engines/origin.ts";
import { becomes, eventually, openPage, signIn } from "../engines/pages.ts";
import { Application } from "./application.ts";

/** Bundles the page with the development version of React, which has more checks. */
async function bundlePage(): Promise<string> {
  const input = new URL("page.ts", import.meta.url).pathname;
  const define = { "process.env.NODE_ENV": JSON.stringify("development") };
  const build = await rolldown({ input, platform: "browser", logLevel: "silent", transform: { define } });
  const { output } = await build.generate({ format: "esm" });
  await build.close();
  return output[0].code;
}

const rendered = () => renderToString(createElement(Application, { session: createSession(), count: 1 }));

let origin: Origin;
let engine: ChromiumEngine;
beforeAll(async () => {
  origin = await startOrigin({ ACCESS_TOKEN_TTL: "15m", SESSION_HINT_COOKIE: "signed_in" });
  engine = await startChromium(origin.authority);
  const body = `<!doctype html><title>React</title><div id="root">${rendered()}</div><script type="module" src="/page.js"></script>`;
  origin.files.set("/react", { type: "text/html", body });
  origin.files.set("/page.js", { type: "text/javascript", body: await bundlePage() });
});
afterAll(async () => {
  await engine?.close();
  await origin?.stop();
});
afterEach(() => engine.reset());

const texts = (tab: Tab) =>
  tab.evaluate<string[]>("[...document.querySelectorAll('.account')].map((p) => p.textContent)");
const notes = (tab: Tab) => tab.evaluate<{ problems: string[]; states: string[]; subscriptions: number }>("notes");

const shows = (tab: Tab, wanted: readonly string[]) =>
  eventually(
    () => texts(tab),
    (shown) => JSON.stringify(shown) === JSON.stringify(wanted),
  );

test("a server renders the unknown state, and makes no request", () => {
  expect(rendered()).toBe('<main><p class="account">unknown </p></main>');
});

test("a page is hydrated as the server rendered it, and then shows who is signed in", async () => {
  await signIn(engine, origin);
  origin.refreshes = 0;
  const tab = await openPage(engine, origin, "/react");
  await shows(tab, ["active alice"]);
  const { problems, states } = await notes(tab);
  expect(problems).toEqual([]);
  expect(states[0]).toBe("unknown");
  expect(origin.refreshes).toBe(1);
});

test("in Strict Mode each component listens once, and renders once per change", async () => {
  await signIn(engine, origin);
  const tab = await openPage(engine, origin, "/react");
  await shows(tab, ["active alice"]);
  await tab.evaluate("void show(3)");
  await shows(tab, ["active alice", "active alice", "active alice"]);
  expect((await notes(tab)).subscriptions).toBe(3);
  await tab.evaluate("void (notes.states.length = 0)");
  await tab.evaluate("session.end()");
  await shows(tab, ["ended ", "ended ", "ended "]);
  const { problems, states } = await notes(tab);
  expect(problems).toEqual([]);
  // In Strict Mode, React renders every component twice.
  expect(states).toEqual(Array.from({ length: 6 }, () => "ended"));
});

test("a component that is unmounted listens no more, and the session goes on", async () => {
  await signIn(engine, origin);
  const tab = await openPage(engine, origin, "/react");
  await shows(tab, ["active alice"]);
  await tab.evaluate("void show(0)");
  await shows(tab, []);
  await eventually(
    async () => (await notes(tab)).subscriptions,
    (count) => count === 0,
  );
  await tab.evaluate("void (notes.states.length = 0)");
  await tab.evaluate("session.end()");
  await becomes(tab, "ended");
  expect(await notes(tab)).toMatchObject({ problems: [], states: [] });
  // A component that is mounted again renders the present state.
  await tab.evaluate("void show(1)");
  await shows(tab, ["ended "]);
});

test("a sign-in by a server action shows in all tabs with the page that the server renders, without a refresh of this tab", async () => {
  await signIn(engine, origin);
  const tab = await openPage(engine, origin, "/react");
  const other = await openPage(engine, origin, "/react");
  await shows(tab, ["active alice"]);
  await shows(other, ["active alice"]);
  await signIn(engine, origin, "bob");
  const { sid, now } = await tab.evaluate<{ sid: string; now: number }>(
    "({ sid: document.cookie.match(/signed_in=([^;]+)/)[1], now: Math.floor(Date.now() / 1000) })",
  );
  const initial = { claims: { sub: "bob", sid, jti: "j", iat: now, exp: now + 900 }, ageMs: 0 };
  origin.refreshes = 0;
  await tab.evaluate(`void show(2, ${JSON.stringify(initial)})`);
  await shows(tab, ["active bob", "active bob"]);
  await shows(other, ["active bob"]);
  // The other tab has asked the service, because the server has rendered no token for it.
  expect(origin.refreshes).toBeLessThanOrEqual(1);
  expect((await notes(tab)).problems).toEqual([]);
});

test("a component that is mounted after a sign-in by a server action shows the new user, though none was there to see it", async () => {
  await signIn(engine, origin);
  const tab = await openPage(engine, origin, "/react");
  await shows(tab, ["active alice"]);
  const initialOf = (subject: string, agoS: number) =>
    tab.evaluate<object>(`(({ sid }, iat) => ({ claims: { sub: "${subject}", sid, jti: "j", iat, exp: iat + 900 }, ageMs: 0 }))
      ({ sid: document.cookie.match(/signed_in=([^;]+)/)[1] }, Math.floor(Date.now() / 1000) - ${agoS})`);
  const alice = await initialOf("alice", 60);
  await tab.evaluate("void show(0)");
  await shows(tab, []);
  await signIn(engine, origin, "bob");
  const bob = await initialOf("bob", 0);
  origin.refreshes = 0;
  await tab.evaluate(`void show(1, ${JSON.stringify(bob)})`);
  await shows(tab, ["active bob"]);
  expect(origin.refreshes).toBe(0);
  // The page of the former user, from a cache of the framework, does not bring that user back.
  await tab.evaluate("void show(0)");
  await shows(tab, []);
  await tab.evaluate(`void show(1, ${JSON.stringify(alice)})`);
  await shows(tab, ["active bob"]);
  expect((await notes(tab)).problems).toEqual([]);
});
