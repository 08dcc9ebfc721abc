/** The console's page of signals as an operator uses it. */
import { createHash } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { SignalsAdminService, SubscriptionKind } from "../../../../gen/auth/admin/v1/signals_admin_pb.ts";
import { openContext } from "../../../support/browser-context.ts";
import { launchChromium } from "../../../support/chromium.ts";
import { type Service, scratch, startService } from "../../../support/service.ts";
import { bearer, logIn, message, openAdmin } from "../../../support/sessions.ts";
import { until } from "../../../support/until.ts";
import { startReceiver } from "../../signals/world.ts";

/** The directory in which the screenshots of the page are kept, from the variable SCREENSHOTS. */
const SCREENSHOTS = process.env.SCREENSHOTS ?? scratch();
const FULL = "full-".repeat(8);
const READER = "reader".repeat(8);
const signals = SignalsAdminService.method;

let browser: Browser;
beforeAll(async () => {
  browser = await launchChromium();
});
afterAll(async () => {
  await browser?.close();
});

async function openPage(service: Service, token: string) {
  const context = await openContext(browser, { viewport: { width: 1100, height: 800 } });
  const page = await context.newPage();
  const problems: string[] = [];
  page.on("pageerror", (error) => problems.push(String(error)));
  page.on("console", (entry) => /Content Security|Trusted|Refused/.test(entry.text()) && problems.push(entry.text()));
  await page.goto(`${service.adminUrl}/console#/signals`);
  await page.getByLabel("Admin token").fill(token);
  await page.getByRole("button", { name: "Sign in" }).click();
  return { page, problems, close: () => context.close() };
}

test("an operator sees how subscriptions are, sends a test, pauses and resumes", async () => {
  const admins = join(scratch(), "admins.json");
  const hash = createHash("sha256").update(READER).digest("hex");
  writeFileSync(admins, JSON.stringify({ admins: [{ name: "reader", hash, scopes: ["signals:read"] }] }));
  const env = { SIGNALS: "on", SIGNALS_ALLOW_PRIVATE: "on", ADMIN_TOKENS: FULL, ADMIN_TOKENS_FILE: admins };
  const service = await startService(env);
  let status = 500;
  const receiver = await startReceiver(() => status);
  const { page, problems, close } = await openPage(service, FULL);
  await page.getByText("No subscriptions").waitFor();
  const wanted = { kind: SubscriptionKind.WEBHOOK, endpoint: receiver.url };
  const created = message(await openAdmin(service).call(signals.createSubscription, wanted, bearer(FULL)));
  await page.getByRole("button", { name: "Read again" }).click();
  const row = page.getByRole("row", { name: receiver.url });
  await row.getByText("webhook").waitFor();
  await row.getByText("active").waitFor();
  await row.getByRole("button", { name: "Send a test" }).click();
  await row.getByText("test failed: server error").waitFor();
  status = 200;
  await row.getByRole("button", { name: "Send a test" }).click();
  await row.getByText("test accepted").waitFor();
  for (const width of [1024, 390]) {
    await page.setViewportSize({ width, height: 800 });
    await page.screenshot({ path: join(SCREENSHOTS, `console-signals-${width}.png`), fullPage: true });
    const widths = '[...document.querySelectorAll("html, .scroll")].map((it) => it.scrollWidth - it.clientWidth)';
    expect(await page.evaluate(widths)).toEqual([0, 0]);
  }
  await page.setViewportSize({ width: 1100, height: 800 });
  await row.getByRole("button", { name: "Pause" }).click();
  await row.getByText("paused: operator").waitFor();
  expect(await row.locator("time").count()).toBe(0);
  // The process that sends signals learns within 5 s that the subscription is paused. From then on the signals of ended sessions wait, and
  // the subscription's row shows since when.
  const endOneAndRead = async () => {
    const { accessToken } = await logIn(service);
    await fetch(`${service.publicUrl}/v1/auth/logout`, { method: "DELETE", headers: bearer(accessToken) });
    await page.getByRole("button", { name: "Read again" }).click();
    return row.locator("time").count();
  };
  await until(async () => expect(await endOneAndRead()).toBe(1));
  await row.getByRole("button", { name: "Resume" }).click();
  await row.getByText("active").waitFor();
  expect(await page.content()).not.toContain(created.generatedSecret);
  expect(problems).toEqual([]);
  await close();

  const reader = await openPage(service, READER);
  await reader.page.getByRole("row", { name: receiver.url }).waitFor();
  expect(await reader.page.getByRole("button", { name: "Pause" }).isDisabled()).toBe(true);
  await reader.close();
  await service.stop();
  await receiver.close();
});

test("a subscription fails from its second failure in a row on", async () => {
  const service = await startService({ SIGNALS: "on", SIGNALS_ALLOW_PRIVATE: "on", ADMIN_TOKENS: FULL });
  const wanted = { kind: SubscriptionKind.WEBHOOK, endpoint: "http://127.0.0.1:9/signals" };
  message(await openAdmin(service).call(signals.createSubscription, wanted, bearer(FULL)));
  const { page, close } = await openPage(service, FULL);
  const row = page.getByRole("row", { name: wanted.endpoint });
  const seen: Record<number, string | null> = {};
  for (const failures of [0, 1, 2]) {
    const lastError = `status_${failures}`;
    // The number of failures of a real receiver grows while the page is read, so the response gets one that stays.
    await page.route("**/ListSubscriptions", async (route) => {
      const response = await route.fetch();
      const { subscriptions } = await response.json();
      await route.fulfill({ response, json: { subscriptions: [{ ...subscriptions[0], failures, lastError }] } });
    });
    await page.getByRole("button", { name: "Read again" }).click();
    await row.getByText(`status ${failures}${failures > 1 ? ` (${failures} in a row)` : ""}`).waitFor();
    seen[failures] = await row.locator(".badge").textContent();
  }
  expect(seen).toEqual({ 0: "active", 1: "active", 2: "failing" });
  await close();
  await service.stop();
});

test("a service without signals says so", async () => {
  const service = await startService({ ADMIN_TOKENS: FULL });
  const { page, close } = await openPage(service, FULL);
  await page.getByText("Signals are off").waitFor();
  await close();
  await service.stop();
});
