/**
 * A page in Chromium keeps its session when Vite's development server replaces modules in it, if the module that creates the session has
 * the lines that docs/tasks/browser.md gives for this case.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openContext } from "../../support/browser-context.ts";
import { launchChromium } from "../../support/chromium.ts";
import { freePort } from "../../support/free-port.ts";
import { startProgram, whileRunning } from "../../support/processes.ts";
import { type Service, scratch, startService } from "../../support/service.ts";
import { logIn } from "../../support/sessions.ts";
import { until } from "../../support/until.ts";
import { CHROMIUM_FLAGS } from "../engines/driver.ts";

const VITE = join(import.meta.dirname, "../../dependencies/frameworks/node_modules/vite/bin/vite.js");
const KIT = join(import.meta.dirname, "../../../src/browser/index.ts");

const [, WITH_THE_LINE = ""] =
  /```ts\n([^`]*kept\.appSession \?\?=[^`]*)```/.exec(readFileSync("docs/tasks/browser.md", "utf8")) ?? [];
const WITHOUT_IT =
  'import { createSession } from "@session-service/browser";\nexport const session = createSession();\n';

const MODULES = { kept: WITH_THE_LINE, plain: WITHOUT_IT };
type Name = keyof typeof MODULES;

/**
 * An application in which the module that creates the session does not accept hot updates, but the module that imports it does, as
 * components of a framework do.
 */
const applicationOf = (name: Name) => `
import { session } from "./${name}-session.ts";
session.subscribe(() => {});
globalThis.session = session;
globalThis.revision = (globalThis.revision ?? 0) + 1;
import.meta.hot.accept();
`;

/** Counts the channels, timers and locks that a session holds in the page. Short timers are not counted, because they are Vite's own. */
const COUNT = `
const open = (globalThis.open = { channels: 0, timers: new Set() });
globalThis.BroadcastChannel = class extends BroadcastChannel {
  constructor(name) { super(name); open.channels++; }
  close() { super.close(); open.channels--; }
};
const { setTimeout: set, clearTimeout: clear } = globalThis;
globalThis.setTimeout = (run, ms, ...rest) => {
  const timer = set(() => { open.timers.delete(timer); run(...rest); }, ms);
  if (ms > 10_000) open.timers.add(timer);
  return timer;
};
globalThis.clearTimeout = (timer) => { open.timers.delete(timer); clear(timer); };
globalThis.counted = async () => {
  const { held, pending } = await navigator.locks.query();
  return { channels: open.channels, timers: open.timers.size, locks: held.length + pending.length };
};
`;

let service: Service;
let browser: Browser;
let url: string;
let program: ReturnType<typeof startProgram>;
const root = scratch();
const write = (name: string, text: string) => writeFileSync(join(root, name), text);

beforeAll(async () => {
  const port = await freePort();
  url = `http://localhost:${port}`;
  service = await startService({ COOKIE_SECURE: "false", COOKIE_PATH: "/", ALLOWED_ORIGINS: url });
  const config = {
    root,
    cacheDir: join(root, "cache"),
    resolve: { alias: { "@session-service/browser": KIT } },
    server: {
      port,
      host: "localhost",
      strictPort: true,
      fs: { strict: false },
      proxy: { "/v1": service.publicUrl },
      // Vite's watcher overlooks the second of two changes within 50 ms, unless it polls at longer intervals.
      watch: { usePolling: true, interval: 100 },
    },
  };
  write("vite.config.mjs", `export default ${JSON.stringify(config)};`);
  for (const [name, module] of Object.entries(MODULES)) {
    write(`${name}.html`, `<!doctype html><title>hot</title><script type="module" src="/${name}.js"></script>`);
    write(`${name}.js`, applicationOf(name as Name));
    write(`${name}-session.ts`, module);
  }
  program = startProgram(process.execPath, [VITE, "--config", join(root, "vite.config.mjs")], { cwd: root });
  await whileRunning(program, () => fetch(`${url}/kept.html`));
  browser = await launchChromium(CHROMIUM_FLAGS);
}, 300_000);
afterAll(async () => {
  await browser?.close();
  await program?.stop();
  await service?.stop();
});

const counted = (page: Page) => page.evaluate<Record<"channels" | "timers" | "locks", number>>("counted()");
const revision = (page: Page) => page.evaluate<number>("globalThis.revision ?? 0");

/** Opens the application, and changes its module twice without a reload. @returns the counts of the page before and after */
async function changeTwice(name: Name) {
  const context = await openContext(browser);
  const { refreshToken } = await logIn(service);
  await context.addCookies([{ name: "refresh_token", value: refreshToken, url, httpOnly: true, sameSite: "Lax" }]);
  const page = await context.newPage();
  await page.addInitScript(COUNT);
  await page.goto(`${url}/${name}.html`);
  const settles = async () => {
    await until(async () => expect(await page.evaluate("session.snapshot.state")).toBe("active"));
    await until(async () => expect(await counted(page)).toMatchObject({ locks: 0 }));
    return counted(page);
  };
  await until(async () => expect(await revision(page)).toBe(1));
  const before = await settles();
  for (const change of [1, 2]) {
    write(`${name}-session.ts`, `${MODULES[name]}// ${change}\n`);
    await until(async () => expect(await revision(page)).toBe(1 + change));
  }
  const after = await settles();
  await context.close();
  return { before, after };
}

describe("a module that makes the session and is replaced", () => {
  test("leaves no channel, timer or lock behind with the line of the documentation", async () => {
    expect(WITH_THE_LINE).toContain("createSession()");
    const { before, after } = await changeTwice("kept");
    expect(before).toMatchObject({ channels: 1, timers: 1 });
    expect(after).toEqual(before);
  });

  test("leaves a session behind each time without it", async () => {
    const { before, after } = await changeTwice("plain");
    expect([before.channels, after.channels]).toEqual([1, 3]);
  });
});
