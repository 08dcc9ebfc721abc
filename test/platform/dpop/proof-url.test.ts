/** The URLs in proofs are compared by the URL standard, if they are valid URIs (RFC 3986). */
import fc from "fast-check";
import { expect, test } from "vitest";
import { proofUrl } from "../../../src/platform/dpop/proof-url.ts";

test.each([
  ["https://a.example", "https://a.example/"],
  ["HTTPS://A.Example:443/x", "https://a.example/x"],
  ["http://a.example:80/", "http://a.example/"],
  ["https://a.example:80/", "https://a.example:80/"],
  ["https://a.example:/", "https://a.example/"],
  ["https://[2001:DB8::1]:8443/x", "https://[2001:db8::1]:8443/x"],
  ["https://a.example/x?a=b#c", "https://a.example/x"],
  ["https://a.example?a=b", "https://a.example/"],
  ["https://a.example/x/../y/./z/..", "https://a.example/y/"],
  ["https://a.example/../../x/.", "https://a.example/x/"],
  ["https://a.example//x//", "https://a.example//x//"],
  ["https://a.example/x/%2e%2E/y", "https://a.example/y"],
  ["https://a.example/%c3%a9%7e%2f", "https://a.example/%C3%A9~%2F"],
  ["https://a.example/é 🎉|%7C%", "https://a.example/%C3%A9%20%F0%9F%8E%89%7C%7C%"],
  ["https://a.example/%%37e", "https://a.example/%7e"],
])("%s is %s", (text, normalized) => {
  expect(proofUrl(text)).toBe(normalized);
});

test.each([
  ...["", "/x", "a.example/x", "ftp://a.example/", "https:/a.example/", "https:///x", " https://a.example/"],
  ...[
    "https://a:b@a.example/",
    "https://a@a.example/",
    "https://é.example/",
    "https://a.example\\x",
    "https://a.example:x/",
  ],
  ...["https://a.example\n", "https://[::1/", "https://%61.example/"],
])("%j is no URL of a request", (text) => {
  expect(proofUrl(text)).toBeUndefined();
});

test("the URL standard has the same result for what clients make with it", () => {
  const segment = fc.string({ unit: fc.constantFrom(..."aZ09-._~!$&'()*+,;=:@%é 🎉", "%2e", "%41", "%c3") });
  const url = fc.webUrl({ withQueryParameters: true, withFragments: true });
  fc.assert(
    fc.property(url, fc.array(segment), (base, segments) => {
      const { origin } = new URL(base);
      const whole = new URL(`${origin}/${segments.join("/")}!`);
      expect(proofUrl(`${origin}/${segments.join("/")}!`)).toBe(proofUrl(whole.href));
    }),
  );
});
