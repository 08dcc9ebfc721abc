import { expect, test } from "vitest";
import { crossSiteFault } from "../../../src/platform/net/cross-site.ts";

const isAllowed = (origin: string) => origin === "https://app.example";
const rules = { isAllowed, allowSameSite: true, allowCrossSite: false };
const OWN = "https://auth.example";

test.each<[string, Record<string, string>, Partial<typeof rules>, string | undefined]>([
  ["no browser", {}, {}, undefined],
  ["same origin", { "sec-fetch-site": "same-origin", origin: OWN }, {}, undefined],
  ["same origin, hidden by the referrer policy", { "sec-fetch-site": "same-origin", origin: "null" }, {}, undefined],
  ["same origin, behind a proxy", { "sec-fetch-site": "same-origin", origin: "https://public.example" }, {}, undefined],
  ["typed into the address bar", { "sec-fetch-site": "none" }, {}, undefined],
  ["a sibling, own origin list", { "sec-fetch-site": "same-site", origin: "https://app.example" }, {}, undefined],
  ["a sibling that is not listed", { "sec-fetch-site": "same-site", origin: "https://b.example" }, {}, "origin"],
  ["a sibling, siblings refused", { "sec-fetch-site": "same-site" }, { allowSameSite: false }, "sec-fetch-site"],
  [
    "a sibling that is listed, siblings refused",
    { "sec-fetch-site": "same-site", origin: "https://app.example" },
    { allowSameSite: false },
    undefined,
  ],
  ["a sibling that hides its origin", { "sec-fetch-site": "same-site", origin: "null" }, {}, "origin"],
  ["another site", { "sec-fetch-site": "cross-site" }, {}, "sec-fetch-site"],
  [
    "another site that is listed, Lax cookies",
    { "sec-fetch-site": "cross-site", origin: "https://app.example" },
    {},
    "sec-fetch-site",
  ],
  [
    "another site that is listed, SameSite=None cookies",
    { "sec-fetch-site": "cross-site", origin: "https://app.example" },
    { allowCrossSite: true },
    undefined,
  ],
  ["another site without origin", { "sec-fetch-site": "cross-site" }, { allowCrossSite: true }, "sec-fetch-site"],
  ["a word that no browser sends", { "sec-fetch-site": "Same-Origin" }, {}, "sec-fetch-site"],
  ["two values", { "sec-fetch-site": "same-origin, same-origin" }, {}, "sec-fetch-site"],
  ["an empty value", { "sec-fetch-site": "" }, {}, "sec-fetch-site"],
  ["an old browser, own origin", { origin: OWN }, {}, undefined],
  ["an old browser, foreign origin", { origin: "https://evil.example" }, {}, "origin"],
  ["an opaque origin", { origin: "null" }, {}, "origin"],
  ["own host, other scheme", { origin: "http://auth.example" }, {}, "origin"],
  ["own host, other port", { origin: "https://auth.example:444" }, {}, "origin"],
  ["a prefix of a listed origin", { origin: "https://app.example.evil" }, {}, "origin"],
])("%s", (_case, headers, change, fault) => {
  const sender = { site: headers["sec-fetch-site"] ?? null, origin: headers.origin ?? null };
  expect(crossSiteFault(sender, (origin) => origin === OWN, { ...rules, ...change })).toBe(fault);
});
