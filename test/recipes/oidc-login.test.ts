/** Runs examples/oidc-login: the provider for development and the configuration of the service, in Chromium. */
import { readFileSync } from "node:fs";
import { parseEnv } from "node:util";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { launchChromium } from "../support/chromium.ts";
import { freePort } from "../support/free-port.ts";
import { type Program, startProgram, whileRunning } from "../support/processes.ts";
import { type Service, startService } from "../support/service.ts";
import { admin, bearer, message, openAdmin } from "../support/sessions.ts";

let service: Service;
let provider: Program;
let browser: Browser;

beforeAll(async () => {
  const [port, providerPort] = [await freePort(), await freePort()];
  const issuer = `http://127.0.0.1:${providerPort}`;
  const env = { PORT: String(providerPort), APP_ORIGIN: `http://127.0.0.1:${port}` };
  provider = startProgram(process.execPath, ["examples/oidc-login/provider.ts"], { env });
  await whileRunning(provider, () => fetch(issuer));
  const given = parseEnv(readFileSync("examples/oidc-login/session-service.env", "utf8")) as Record<string, string>;
  service = await startService({ ...given, OIDC_ISSUER: issuer, PORT: String(port) });
  browser = await launchChromium();
});
afterAll(async () => {
  await browser?.close();
  await service?.stop();
  await provider?.stop();
});

async function sessionsOf(subject: string) {
  const caller = openAdmin(service);
  const { sessions } = message(await caller.call(admin.listSessions, { subject }, bearer(service.adminToken)));
  caller.close();
  return sessions;
}

test("a user signs in at the provider and out again", async () => {
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.goto(`${service.publicUrl}/v1/auth/login?return_to=/docs`);
  await page.fill("input[name=login]", "alice");
  await page.fill("input[name=password]", "any");
  await page.click("button[type=submit]");
  await page.click("button[type=submit]");
  await page.waitForURL(`${service.publicUrl}/docs`);
  const names = (await context.cookies(`${service.publicUrl}/v1/auth`)).map(({ name }) => name);
  expect(names).toContain("refresh_token");
  expect(names.filter((name) => name.startsWith("login-"))).toEqual([]);
  expect(await sessionsOf("alice")).toHaveLength(1);

  await page.goto(`${service.publicUrl}/v1/auth/sign-out?return_to=/docs`);
  expect(page.url()).toMatch(/\/session\/end/);
  expect(await sessionsOf("alice")).toEqual([]);
});

test("a user who refuses at the provider sees a page that says so, without a session", async () => {
  const page = await browser.newPage();
  await page.goto(`${service.publicUrl}/v1/auth/login`);
  await page.fill("input[name=login]", "bob");
  await page.fill("input[name=password]", "any");
  await page.click("button[type=submit]");
  await page.click("text=Cancel");
  await page.waitForSelector("h1");
  expect(await page.textContent("h1")).toBe("You were not signed in");
  // The policy of the page allows its own style, so Chromium has applied it.
  const width = await page.evaluate("getComputedStyle(document.querySelector('main')).maxWidth");
  expect(width).not.toBe("none");
  expect(await sessionsOf("bob")).toEqual([]);
});
