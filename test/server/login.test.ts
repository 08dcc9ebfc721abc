import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { loginLocation, returnPath } from "../../src/server/index.ts";

const ORIGIN = "https://app.example";

describe("where a login leads back to", () => {
  test.each(["/", "/orders", "/orders?page=2#last", "/%2f%2fevil.example", "/a//b", "/loginx"])("%s", (path) => {
    expect(returnPath(path, "/login")).toBe(path);
  });

  test.each([
    ...[null, undefined, "", "orders", "?x", "#x", "https://evil.example", "//evil.example", "///evil.example"],
    ...["/\\evil.example", "\\\\evil.example", "/\t/evil.example", "\t//evil.example", "/\n/evil.example"],
    ...["/.//evil.example", "/x/..//evil.example", "/%2e//evil.example", "javascript:alert(1)", " /orders"],
    // These are no URLs.
    ...["//[", "//:99999999/"],
    ...["/login", "/login?next=/login", "/login/", "/LOGIN", "/x/../login", "/./login#a"],
  ])("%j is replaced by the root", (wanted) => {
    expect(returnPath(wanted, "/login")).toBe("/");
  });

  test("a parameter that is there twice is replaced by the root", () => {
    expect(returnPath(["/orders", "//evil.example"], "/login")).toBe("/");
  });

  test("whatever the parameter holds, a browser stays on the origin and off the login", () => {
    const parts = fc.constantFrom(
      "/",
      "\\",
      ".",
      "..",
      "//",
      "%2f",
      "%5c",
      "\t",
      "\n",
      "@",
      ":",
      "evil.example",
      "login",
      "?",
      "#",
    );
    const text = fc.oneof(
      fc.string(),
      fc.array(parts, { maxLength: 8 }).map((list) => `/${list.join("")}`),
    );
    fc.assert(
      fc.property(text, (wanted) => {
        const url = new URL(returnPath(wanted, "/login"), ORIGIN);
        expect(url.origin).toBe(ORIGIN);
        expect(url.pathname.replace(/\/+$/, "").toLowerCase()).not.toBe("/login");
      }),
      { numRuns: 5_000 },
    );
  });
});

describe("the way to the login", () => {
  test("has the path to return to", () => {
    expect(loginLocation(`${ORIGIN}/orders?page=2`, "/login", "next")).toBe("/login?next=%2Forders%3Fpage%3D2");
  });

  test.each(["/login", "/login/", "/login?next=%2Forders", "/Login"])("does not start at %s", (path) => {
    expect(loginLocation(path, "/login", "next")).toBeUndefined();
  });
});
