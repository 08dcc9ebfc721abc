/** Pages of a session that is bound to a device key, requested by its own browser and by an attacker who has copied its cookies. */
import { expect, test } from "vitest";
import type { ServerSessions } from "../../src/server/index.ts";
import { BOUND, Device } from "../support/device.ts";
import { aService } from "../support/every-protocol.ts";
import { aServer, aVerifier, COOKIES, signIn } from "./world.ts";

const service = aService({ ...COOKIES, ...BOUND });
const kept = aVerifier(service);

/** Returns a browser whose session has just been bound to a device key. */
async function boundBrowser(): Promise<Device> {
  const jar = await signIn(service);
  const browser = new Device(service.publicUrl, jar.cookies.get("refresh_token") ?? "");
  await browser.bind();
  // Removes the cookie of the access token, as if it had expired.
  browser.jar.delete("access_token");
  return browser;
}

/** Requests a page of an application, as a browser with these cookies does. */
async function view(sessions: ServerSessions, { jar }: Device) {
  const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join("; ");
  const headers = new Headers({ cookie, "x-forwarded-proto": "https", "sec-fetch-mode": "navigate" });
  return (await sessions.authenticate({ method: "GET", url: "/", headers }, "192.0.2.7")).user.state;
}

/** Returns an attacker with copies of all cookies, but with a device cookie that the service has not issued. */
function thiefOf(browser: Device): Device {
  const thief = browser.copied();
  thief.jar.set("refresh_token_device", "forged");
  return thief;
}

test("a thief without the device cookie gets no page that the owner has caused a refresh for", async () => {
  const { sessions } = aServer(service, kept.verifier);
  const browser = await boundBrowser();
  expect(await view(sessions, browser)).toBe("active");
  expect(await view(sessions, thiefOf(browser))).toBe("ended");
});

test("the owner is not shown as signed out where a thief has just been refused", async () => {
  const { sessions } = aServer(service, kept.verifier);
  const browser = await boundBrowser();
  expect(await view(sessions, thiefOf(browser))).toBe("ended");
  expect(await view(sessions, browser)).toBe("active");
});

test("a browser that has to renew its device cookie first is not shown as signed out", async () => {
  const { sessions } = aServer(service, kept.verifier);
  const browser = await boundBrowser();
  browser.forgetDeviceCookie();
  expect(await view(sessions, browser)).toBe("unavailable");
});
