/** Runs examples/behind-nginx as its page says, and signs in, stays signed in and signs out in three browser engines. */
import { readFileSync } from "node:fs";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { type Engine, startChromium, type Tab } from "../browser/engines/driver.ts";
import { startFirefox } from "../browser/engines/firefox.ts";
import { startWebKit } from "../browser/engines/webkit.ts";
import { serverAuthority } from "../support/certificate.ts";
import { freePort } from "../support/free-port.ts";
import { type Program, startProgram, whileRunning } from "../support/processes.ts";
import { scratch } from "../support/service.ts";
import { until } from "../support/until.ts";

const { authority } = serverAuthority(["localhost"]);
const TABS = 20;

let example: Program;
let origin: string;
beforeAll(async () => {
  const names = ["PORT", "APPLICATION_PORT", "PROVIDER_PORT", "SERVICE_PORT", "CHECK_PORT"];
  const ports: Record<string, string> = {};
  for (const name of names) ports[name] = String(await freePort());
  // Tokens that are about to expire: the check renews each.
  const env = {
    ...ports,
    NGINX: "/usr/sbin/nginx",
    DATA_DIR: scratch(),
    ACCESS_TOKEN_TTL: "10s",
    RATE_LIMIT_REFRESH: "off",
  };
  const [, script = ""] = /^npm run (\S+)$/m.exec(readFileSync("docs/start/behind-nginx.md", "utf8")) ?? [];
  const { scripts } = JSON.parse(readFileSync("package.json", "utf8")) as { scripts: Record<string, string> };
  const [exec, node, ...args] = (scripts[script] ?? "").split(" ");
  expect([exec, node]).toEqual(["exec", "node"]);
  example = startProgram(process.execPath, args, { env });
  origin = `http://localhost:${ports.PORT}`;
  await whileRunning(example, async () => expect(example.output()).toContain(`Open ${origin}/orders`));
  await whileRunning(example, () => fetch(`${origin}/v1/auth/login`, { redirect: "manual" }));
});
afterAll(() => example?.stop());

const textOf = (tab: Tab) => tab.evaluate<string>("document.body?.innerText ?? ''");
const shows = (tab: Tab, text: string) => until(async () => expect(await textOf(tab)).toContain(text));
/** Clicks what a selector finds. The page that it leads to comes later. */
const click = (tab: Tab, selector: string) =>
  tab.evaluate(`void setTimeout(() => document.querySelector(${JSON.stringify(selector)}).click())`);

/** Signs in at the provider for development, whose first page the tab shows or will show. */
async function signIn(tab: Tab, name: string): Promise<void> {
  await until(async () => expect(await tab.evaluate("document.querySelector('[name=login]') !== null")).toBe(true));
  const fill = (field: string, value: string) =>
    tab.evaluate(`document.querySelector("[name=${field}]").value = ${JSON.stringify(value)}`);
  await fill("login", name);
  await fill("password", "any");
  await click(tab, "[type=submit]");
  await shows(tab, "Authorize");
  await click(tab, "[type=submit]");
}

describe.each([
  ["Chromium", () => startChromium(authority)],
  ["Firefox", () => startFirefox(authority)],
  ["WebKitGTK", () => startWebKit()],
])("%s", (name, start) => {
  let engine: Engine;
  beforeAll(async () => {
    engine = await start();
  });
  afterEach(() => engine.reset());
  afterAll(() => engine?.close());

  test("signs in on the way to a page, stays signed in in all tabs, and signs out everywhere", async () => {
    const user = `user of ${name}`;
    const tab = await engine.open(`${origin}/orders?of=${name}`);
    await signIn(tab, user);
    await shows(tab, `Signed in as ${user}`);
    expect(await tab.evaluate("location.href")).toBe(`${origin}/orders?of=${name}`);

    const tabs = await Promise.all(Array.from({ length: TABS }, (_, at) => engine.open(`${origin}/orders?tab=${at}`)));
    for (const each of tabs) await shows(each, `Signed in as ${user}`);
    const statuses = "Promise.all(Array.from({ length: 20 }, () => fetch('/data').then(({ status }) => status)))";
    expect(new Set(await tab.evaluate<number[]>(statuses))).toEqual(new Set([200]));

    await click(tab, "a");
    await until(async () => expect(await tab.evaluate("location.pathname")).toMatch(/session\/end/));
    const [other] = tabs as [Tab];
    await until(async () => expect(await other.evaluate("fetch('/data').then(({ status }) => status)")).toBe(401));
  });
});
