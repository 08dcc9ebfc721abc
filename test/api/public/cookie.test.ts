import { describe, expect, test } from "vitest";
import { refreshCookie } from "../../../src/api/public/cookie.ts";
import type { CookieSettings } from "../../../src/config/cookie.ts";

const settings: CookieSettings = {
  name: "refresh_token",
  domain: undefined,
  path: undefined,
  sameSite: "Lax",
  secure: true,
};

describe("reading", () => {
  const cookie = refreshCookie(settings);
  test.each([
    [null, undefined],
    ["", undefined],
    ["other=1", undefined],
    ["refresh_token=a", "a"],
    ["x=1; refresh_token=a; y=2", "a"],
    ["x=1;refresh_token=a", "a"],
    ["refresh_token=a=b", "a=b"],
    ["xrefresh_token=a; refresh_tokenx=b; Refresh_Token=c", undefined],
    ["refresh_token=a; refresh_token=a", "a"],
    ["refresh_token=a; refresh_token=b", "ambiguous"],
    ["refresh_token=a; refresh_token=", "ambiguous"],
    ["refresh_token", undefined],
  ])("%j holds %j", (header, value) => expect(cookie.read(header)).toBe(value));

  test("with a prefixed name the plain one is read when the prefixed one is not there", () => {
    const prefixed = refreshCookie({ ...settings, name: "__Secure-refresh_token" });
    expect(prefixed.read("refresh_token=old")).toBe("old");
    expect(prefixed.read("refresh_token=old; __Secure-refresh_token=new")).toBe("new");
    expect(prefixed.clear).toHaveLength(2);
  });
});

describe("writing", () => {
  test("as the contract says", () => {
    expect(refreshCookie(settings).set("T", 60)).toBe(
      "refresh_token=T; Path=/v1/auth; HttpOnly; Secure; SameSite=Lax; Max-Age=60",
    );
    expect(refreshCookie(settings).clear).toEqual([
      "refresh_token=; Path=/v1/auth; HttpOnly; Secure; SameSite=Lax; Max-Age=0",
    ]);
  });
  test("with every setting", () => {
    const cookie = refreshCookie({ name: "rt", domain: "example.com", path: "/", sameSite: "Strict", secure: false });
    expect(cookie.set("T", 1)).toBe("rt=T; Path=/; Domain=example.com; HttpOnly; SameSite=Strict; Max-Age=1");
  });
  test("__Host- implies the root path", () => {
    expect(refreshCookie({ ...settings, name: "__Host-rt" }).set("T", 1)).toContain("; Path=/;");
  });
});
