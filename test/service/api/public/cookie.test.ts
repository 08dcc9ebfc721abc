import { describe, expect, test } from "vitest";
import { createRefreshCookie } from "../../../../src/service/api/public/cookie.ts";
import type { CookieSettings } from "../../../../src/service/config/cookie.ts";
import type { SessionId } from "../../../../src/service/session/model.ts";
import { wallMs } from "../../../../src/service/session/time.ts";

const settings: CookieSettings = {
  name: "refresh_token",
  domain: undefined,
  path: undefined,
  sameSite: "Lax",
  secure: true,
  partitioned: false,
  migrateUntilMs: undefined,
  previousScopes: [],
  hintName: undefined,
  accessName: undefined,
};
const NOW = Date.parse("2027-01-31");
const ACCESS = { token: "A", expiresAt: wallMs(NOW + 299_900) };
const issued = (secondsLeft: number, accessToken = ACCESS) => {
  return { sid: "S" as SessionId, accessToken, refreshToken: "T", secondsLeft, isPersistent: true };
};
const cookieOf = (changes: Partial<CookieSettings> = {}) => createRefreshCookie({ ...settings, ...changes }, () => NOW);

describe("reading", () => {
  const cookie = cookieOf();
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
    ["refresh_token=a; refresh_token=b; refresh_token=a", ["a", "b"]],
    ["refresh_token=a; refresh_token=", "a"],
    ["refresh_token=; refresh_token=", ""],
    ["refresh_token", undefined],
    ["\t refresh_token \t=\t a \t", "a"],
    ["refresh_token=", ""],
    ["refresh_token= \t ", ""],
  ])("%j holds %j", (header, value) => expect(cookie.read(header)).toEqual(value));

  /**
   * Characters that Unicode counts as spaces, or that browsers accept in names. A sibling domain may set a cookie whose name is that of the
   * service with such a character added. The service must not read that cookie as its own.
   */
  const LOOKALIKES = ["\u00a0", "\u0085", "\u000b", "\u000c", "\ufeff", "\u2003", "\u3000", "\u00c2\u00a0"];

  test.each(LOOKALIKES)("a name or value with %j around it is another one", (space) => {
    const host = cookieOf({ name: "__Host-rt" });
    for (const header of [`${space}__Host-rt=planted`, `__Host-rt${space}=planted`, ` ${space} __Host-rt=planted`]) {
      expect(host.read(header)).toBeUndefined();
      expect(host.read(`${header}; __Host-rt=mine`)).toBe("mine");
    }
    expect(host.read(`__Host-rt=a${space}`)).toBe(`a${space}`);
  });

  describe.each(["__Secure-refresh_token", "__Host-refresh_token"])("with the name %s", (name) => {
    test("the plain name is not read, and not cleared", () => {
      expect(cookieOf({ name }).read("refresh_token=planted")).toBeUndefined();
      expect(cookieOf({ name }).clear()).toHaveLength(1);
    });

    test("until the end of a migration the plain name is read when the prefixed one is not there, and cleared", () => {
      const migrating = cookieOf({ name, migrateUntilMs: NOW + 1 });
      expect(migrating.read("refresh_token=old")).toBe("old");
      expect(migrating.read(`refresh_token=old; ${name}=new`)).toBe("new");
      expect(migrating.read(`${name}=; refresh_token=old`)).toBe("");
      expect(migrating.clear()).toHaveLength(2);
      expect(migrating.clear()[1]).toBe("refresh_token=; Path=/v1/auth; HttpOnly; Secure; SameSite=Lax; Max-Age=0");
    });

    test("from the end of a migration on it is not", () => {
      const migrated = cookieOf({ name, migrateUntilMs: NOW });
      expect(migrated.read("refresh_token=planted")).toBeUndefined();
      expect(migrated.clear()).toHaveLength(1);
    });
  });
});

describe("writing", () => {
  test("has the attributes of the contract", () => {
    expect(cookieOf().set(issued(60))).toEqual([
      "refresh_token=T; Path=/v1/auth; HttpOnly; Secure; SameSite=Lax; Max-Age=60",
    ]);
    expect(cookieOf().clear()).toEqual(["refresh_token=; Path=/v1/auth; HttpOnly; Secure; SameSite=Lax; Max-Age=0"]);
  });
  test("with every setting", () => {
    const cookie = cookieOf({ name: "rt", domain: "example.com", path: "/", sameSite: "Strict", secure: false });
    expect(cookie.set(issued(1))).toEqual(["rt=T; Path=/; Domain=example.com; HttpOnly; SameSite=Strict; Max-Age=1"]);
  });
  test("partitioned by the top-level site, when it is set and when it is cleared", () => {
    const companions = { hintName: "signed_in", accessName: "access_token" };
    const cookie = cookieOf({ ...companions, sameSite: "None", partitioned: true });
    for (const each of [...cookie.set(issued(60)), ...cookie.clear()]) {
      expect(each).toContain("; Secure; SameSite=None; Partitioned; Max-Age=");
    }
  });
  test("without a time all three end with the browser, and former scopes are expired as ever", () => {
    const companions = { hintName: "signed_in", accessName: "access_token" };
    const cookie = cookieOf({ ...companions, previousScopes: [{ domain: undefined, path: "/old" }] });
    const [refresh, hint, access, ...former] = cookie.set({ ...issued(60), isPersistent: false });
    expect(refresh).toBe("refresh_token=T; Path=/v1/auth; HttpOnly; Secure; SameSite=Lax");
    expect(hint).toBe("signed_in=S; Path=/; Secure; SameSite=Lax");
    expect(access).toBe("access_token=A; Path=/; HttpOnly; Secure; SameSite=Lax");
    expect(former).not.toEqual([]);
    expect(former.every((line) => line.endsWith("; Max-Age=0"))).toBe(true);
  });
  test.each([undefined, "/"])("__Host- implies the root path, with the configured path %s", (path) => {
    expect(cookieOf({ name: "__Host-rt", path }).set(issued(1))[0]).toContain("; Path=/;");
  });
  test("the hint is set and cleared beside it, for scripts of every page", () => {
    const cookie = cookieOf({ hintName: "signed_in", domain: "example.com" });
    expect(cookie.set(issued(60))[1]).toBe("signed_in=S; Path=/; Domain=example.com; Secure; SameSite=Lax; Max-Age=60");
    expect(cookie.clear()[1]).toBe("signed_in=; Path=/; Domain=example.com; Secure; SameSite=Lax; Max-Age=0");
  });
});

describe("the access token for servers that render", () => {
  const cookie = cookieOf({ accessName: "access_token", hintName: "signed_in", domain: "example.com" });
  const attributes = "Path=/; Domain=example.com; HttpOnly; Secure; SameSite=Lax";

  test("is set beside the refresh token for its own life, on every path, and not for scripts", () => {
    expect(cookie.set(issued(86_400))[2]).toBe(`access_token=A; ${attributes}; Max-Age=299`);
    expect(cookie.set(issued(86_400, { token: "A", expiresAt: wallMs(NOW - 1) }))[2]).toContain("; Max-Age=0");
  });

  test("is cleared with it, and expired in previous scopes", () => {
    expect(cookie.clear()[2]).toBe(`access_token=; ${attributes}; Max-Age=0`);
    const moved = cookieOf({
      accessName: "access_token",
      previousScopes: [{ domain: "example.com", path: "/v1/auth" }],
    });
    expect(moved.set(issued(60))[3]).toBe(`access_token=; ${attributes}; Max-Age=0`);
  });
});

describe("other scopes of the same name", () => {
  const DOMAIN = { domain: "example.com", path: "/" };
  const HOST = { domain: undefined, path: "/v1/auth" };

  test("those that the configuration names are expired wherever the cookie is set or cleared", () => {
    const cookie = cookieOf({ previousScopes: [DOMAIN, HOST] });
    const expired = "refresh_token=; Path=/; Domain=example.com; HttpOnly; Secure; SameSite=Lax; Max-Age=0";
    expect(cookie.set(issued(60)).slice(1)).toEqual([expired]);
    expect(cookie.clear().slice(1)).toEqual([expired]);
  });

  test("the scope in use is never among them, however its domain is spelt", () => {
    const cookie = cookieOf({
      domain: "example.com",
      path: "/",
      previousScopes: [{ ...DOMAIN, domain: ".Example.com" }],
    });
    expect(cookie.set(issued(60))).toHaveLength(1);
  });

  test("the hint goes with them, and so does the plain name during a migration", () => {
    const changes = { name: "__Secure-rt", migrateUntilMs: NOW + 1, hintName: "signed_in", previousScopes: [DOMAIN] };
    expect(cookieOf(changes).set(issued(60)).slice(2)).toEqual([
      "__Secure-rt=; Path=/; Domain=example.com; HttpOnly; Secure; SameSite=Lax; Max-Age=0",
      "rt=; Path=/; Domain=example.com; HttpOnly; Secure; SameSite=Lax; Max-Age=0",
      "signed_in=; Path=/; Domain=example.com; HttpOnly; Secure; SameSite=Lax; Max-Age=0",
    ]);
  });

  describe("while cookies are partitioned", () => {
    const partitioned = { sameSite: "None", partitioned: true } as const;
    const both = (name: string, where: string) =>
      ["; Partitioned", ""].map((form) => `${name}=; ${where}; HttpOnly; Secure; SameSite=None${form}; Max-Age=0`);

    test("those from before go too, but not the one in use", () => {
      const cookie = cookieOf({ ...partitioned, accessName: "at", previousScopes: [DOMAIN, HOST] });
      const expired = [
        ...both("refresh_token", "Path=/; Domain=example.com"),
        ...both("at", "Path=/; Domain=example.com"),
      ];
      expect(cookie.set(issued(60)).slice(2)).toEqual(expired);
      expect(cookie.clear().slice(2)).toEqual(expired);
    });

    test("of a host, those from before go from the path in use", () => {
      const before = cookieOf(partitioned)
        .expireElsewhere("auth.example.com")
        .filter((line) => !line.includes("Partitioned"));
      expect(before).toEqual(
        ["auth.example.com", "example.com"].map((at) => both("refresh_token", `Path=/v1/auth; Domain=${at}`)[1]),
      );
      expect(cookieOf(partitioned).expireElsewhere("a.b.c.d.e.f.example.com")).toHaveLength(14);
      // The cookies beside it have one form, so that the response does not become larger than proxies allow.
      const beside = cookieOf({ ...partitioned, accessName: "at" }).expireElsewhere("auth.example.com");
      expect(beside.filter((line) => line.startsWith("at="))).toEqual(
        ["auth.example.com", "example.com"].map((at) => both("at", `Path=/; Domain=${at}`)[0]),
      );
    });
  });

  test("a __Host- name has no other scope", () => {
    expect(cookieOf({ name: "__Host-rt", previousScopes: [DOMAIN] }).set(issued(60))).toHaveLength(1);
    expect(cookieOf({ name: "__Host-rt" }).expireElsewhere("auth.example.com")).toEqual([]);
  });

  test("of a host: itself, its domain and the parents, but the scope in use and a top-level domain", () => {
    const scopes = cookieOf()
      .expireElsewhere("auth.example.com")
      .map((line) => /Path=([^;]*)(?:; Domain=([^;]*))?/.exec(line)?.slice(1).reverse().join(" "));
    expect(scopes.sort()).toEqual(
      [
        " /",
        " /v1",
        ...["auth.example.com", "example.com"].flatMap((at) => [`${at} /`, `${at} /v1`, `${at} /v1/auth`]),
      ].sort(),
    );
  });

  test.each(["127.0.0.1", "[::1]", "localhost"])("%s has no domain", (host) => {
    expect(cookieOf().expireElsewhere(host)).toHaveLength(2);
  });

  test("are few, however long the name of the host", () => {
    expect(cookieOf().expireElsewhere("a.b.c.d.e.f.example.com")).toHaveLength(11);
  });
});
