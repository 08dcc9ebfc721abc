import { expect, test } from "vitest";
import { createPendingLogins } from "../../../src/service/sign-in/pending-logins.ts";
import { createSecretSeal } from "../../../src/service/tokens/sealed-secret.ts";
import { someKeys } from "../../support/tokens.ts";

const LOGIN = { provider: "p", nonce: "n", codeVerifier: "v", destination: "https://app.example.com/" };
let now = 1_000_000;

const keys = someKeys();
/** An instance of the service: it has nothing but the key ring. */
const instance = (purpose = "sign-in", isSecure = true) =>
  createPendingLogins({ seal: createSecretSeal(keys, purpose), clock: () => now, isSecure });

/** Returns the `Cookie` header of a browser that has these `Set-Cookie` values. */
const headerOf = (cookies: readonly string[] = []) => cookies.map((one) => one.split(";")[0]).join("; ");

test("another instance completes a login, by https with a name that no sibling domain can set", () => {
  const cookies = instance().begin("", { ...LOGIN, state: "s" }) ?? [];
  expect(cookies[0]).toMatch(/^__Host-login-[\w-]{16}=[\w-]+; Max-Age=600; Path=\/; HttpOnly; SameSite=Lax; Secure$/);
  expect(instance().find(headerOf(cookies), "s")).toMatchObject(LOGIN);
  expect(instance().find(headerOf(cookies), "other")).toBeUndefined();
  expect(instance().find(headerOf(cookies).replace("__Host-", "\u00a0__Host-"), "s")).toBeUndefined();
});

test("a text that was sealed for another purpose is no login", () => {
  const cookies = instance("").begin("", { ...LOGIN, state: "s" });
  expect(instance().find(headerOf(cookies), "s")).toBeUndefined();
});

test("a login is over after ten minutes", () => {
  const header = headerOf(instance().begin("", { ...LOGIN, state: "s" }));
  now += 599_999;
  expect(instance().find(header, "s")).toBeDefined();
  now += 1;
  expect(instance().find(header, "s")).toBeUndefined();
});

test("beyond four logins the oldest is removed, and what cannot be used before it", () => {
  const own = instance();
  let header = `__Host-login-${"x".repeat(16)}=planted`;
  for (const state of ["a", "b", "c"]) {
    header += `; ${headerOf(own.begin("", { ...LOGIN, state }))}`;
    now += 1;
  }
  const [, ...removed] = own.begin(header, { ...LOGIN, state: "d" }) ?? [];
  expect(removed).toEqual([expect.stringMatching(/^__Host-login-x{16}=; Max-Age=0/)]);
});

test("a login that makes too large a cookie does not begin", () => {
  expect(instance().begin("", { ...LOGIN, state: "s", destination: "a".repeat(4_000) })).toBeUndefined();
});
