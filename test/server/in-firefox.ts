/** An application of `examples` in Firefox: login, action, renewal, and a logout that the other tab sees. */
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Engine, Tab } from "../browser/engines/driver.ts";
import { startFirefox } from "../browser/engines/firefox.ts";
import { selfSigned } from "../support/certificate.ts";
import { until } from "../support/until.ts";

const SETUP_TIMEOUT_MS = 300_000;

const fill = (name: string, value: string) =>
  `(document.querySelector('input[name="${name}"]').value = ${JSON.stringify(value)})`;
const press = (text: string) =>
  `[...document.querySelectorAll("button")].find(({ textContent }) => textContent === "${text}").click()`;

/** Waits until the page shows a text. A navigation in between aborts the evaluation but not the wait. */
const untilShown = (tab: Tab, text: string) =>
  until(async () => {
    if (!(await tab.evaluate<string>("document.body.innerText")).includes(text)) throw new Error(`no ${text} yet`);
  });
const pathOf = (tab: Tab) => tab.evaluate<string>("location.pathname");

export function inFirefox(url: () => string): void {
  let firefox: Engine;
  beforeAll(async () => {
    firefox = await startFirefox(selfSigned().cert);
  }, SETUP_TIMEOUT_MS);
  afterAll(() => firefox?.close());

  test("in Firefox, a user signs in, changes something, and signs out in all tabs", async () => {
    const tab = await firefox.open(`${url()}/account`);
    expect(await pathOf(tab)).toBe("/login");
    await tab.evaluate(`void (${fill("email", "alice@example.com")}, ${fill("password", "correct horse")})`);
    await tab.evaluate(`void setTimeout(() => ${press("Sign in")})`);
    await untilShown(tab, "Account of alice");
    await untilShown(tab, "This device");
    await untilShown(tab, "Signed in as alice");
    await tab.evaluate(`void (${fill("note", "From Firefox")}, setTimeout(() => ${press("Add")}))`);
    await untilShown(tab, "From Firefox");
    const other = await firefox.open(`${url()}/account`);
    await untilShown(other, "Account of alice");
    await tab.evaluate(`void setTimeout(() => ${press("Sign out")})`);
    await until(async () => expect(await pathOf(tab)).toBe("/"));
    await untilShown(tab, "ended");
    await other.goto(`${url()}/account`);
    expect(await pathOf(other)).toBe("/login");
  });
}
