/** A deployment that moves the cookies to names with a prefix. */
import { expect, test } from "vitest";
import { aService } from "../support/every-protocol.ts";
import { aServer, aVerifier, COOKIES, signIn } from "./world.ts";

const names = { COOKIE_NAME: "__Host-refresh_token", ACCESS_COOKIE: "__Host-access_token" };
const COOKIE_MIGRATE_UNTIL = `${new Date().getUTCFullYear() + 2}-01-31`;
const service = aService({ ...COOKIES, ...names, COOKIE_MIGRATE_UNTIL });
const kept = aVerifier(service);

test("a browser that has the names without the prefix stays signed in, and gets the new ones", async () => {
  const jar = await signIn(service);
  const token = jar.cookies.get(names.COOKIE_NAME) ?? "";
  jar.cookies.clear();
  jar.cookies.set("refresh_token", token);
  const options = { refreshCookie: names.COOKIE_NAME, accessCookie: names.ACCESS_COOKIE };
  const { sessions } = aServer(service, kept.verifier, options);
  const { user, setCookies, forward } = await sessions.authenticate(jar.request());
  expect(user.state).toBe("active");
  expect((await sessions.current(forward)).state).toBe("active");
  jar.take(setCookies);
  expect([...jar.cookies.keys()]).toEqual(expect.arrayContaining([names.ACCESS_COOKIE, names.COOKIE_NAME]));
});
