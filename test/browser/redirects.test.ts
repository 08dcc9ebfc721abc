/** A proof or a cookie does not follow a redirect: another origin receives nothing. */
import { expect, test } from "vitest";
import { createDeviceKeys } from "../../src/browser/device/keys.ts";
import { createDeviceRequests } from "../../src/browser/device/requests.ts";
import type { Realm } from "../../src/browser/realm.ts";
import { send } from "../../src/browser/request.ts";
import { startRedirecting } from "../support/redirecting.ts";
import { createMemoryStorage } from "./device/memory-storage.ts";

const realm: Realm = {
  fetch: (url, init) => fetch(url, init),
  // The head start of a browser that binds sessions itself is over at once.
  setTimeout: (callback, delayMs) => setTimeout(callback, delayMs === 5_000 ? 0 : delayMs),
  clearTimeout: (timer) => clearTimeout(timer),
  ...{ performance, Date, Math },
};
const { signal } = new AbortController();

test("a refresh and a logout", async () => {
  const { origin, received } = await startRedirecting();
  for (const [path, token] of [["/v1/auth/refresh"], ["/v1/auth/logout", "token"]] as const) {
    expect(await send(realm, origin + path, signal, token)).toEqual({ cause: expect.any(TypeError) });
  }
  expect(received).toEqual({ first: ["POST /v1/auth/refresh", "DELETE /v1/auth/logout"], other: [] });
});

test("the registration of a device key", async () => {
  const { origin, received } = await startRedirecting();
  const keys = createDeviceKeys({ indexedDB: createMemoryStorage().indexedDB, crypto }, "keys");
  await keys.obtain("session");
  await expect(createDeviceRequests(realm, crypto, keys, origin).register("session", "challenge")).rejects.toThrow();
  expect(received).toEqual({ first: ["POST /v1/auth/device/refresh"], other: [] });
});
