import { expect, test } from "vitest";
import { destinationOf } from "../../../src/service/sign-in/return-to.ts";

const OWN = "https://app.example.com";
const ALLOWED = "https://docs.example.com";
const destination = (text: string) => destinationOf(text, OWN, (origin) => origin === ALLOWED);

test.each([
  ["/", `${OWN}/`],
  ["/orders?id=1#top", `${OWN}/orders?id=1#top`],
  ["/a%2F%2Fb/%5Cc", `${OWN}/a%2F%2Fb/%5Cc`],
  ["/.//evil.example", `${OWN}//evil.example`],
  [`${OWN}/orders`, `${OWN}/orders`],
  [`${ALLOWED}/x`, `${ALLOWED}/x`],
  ["HTTPS://APP.example.com/", `${OWN}/`],
])("%s leads to %s", (text, url) => {
  expect(destination(text)).toBe(url);
});

test("routes of the service are no destination, however they are written", () => {
  for (const text of ["/v1/auth/login", "/v1/./auth/sign-out", "/x/../v1/auth/login?a=b", "/%2e/v1/auth/callback"]) {
    expect(destination(text)).toBeUndefined();
    expect(destination(OWN + text)).toBeUndefined();
  }
});

/** Spellings that a browser, or a careless check, takes for the own origin or for a path. */
function* hostileSpellings(): Generator<string> {
  const evil = [
    "evil.example",
    "evil.example:443",
    "[::1]",
    "2130706433",
    "\u0435vil.example",
    "evil\u3002example",
    "evil%2eexample",
  ];
  const starts = [
    ...[
      "//",
      "///",
      "////",
      "/\\",
      "\\/",
      "\\\\",
      "/\t/",
      "/\n/",
      "/\r/",
      "\t//",
      " //",
      "\u0000//",
      "\ufeff//",
      "\u00a0//",
    ],
    ...[
      "http:",
      "https:",
      "http:/",
      "https:/",
      "http:\\\\",
      "https:\\\\",
      "https:///",
      "https:////",
      "http://",
      "https://",
    ],
    ...[
      "HtTpS://",
      "ht\ttps://",
      "\thttps://",
      "javascript://",
      "data://",
      "ftp://",
      "ws://",
      "file://",
      "blob:https://",
    ],
    ...[
      "https://app.example.com@",
      "https://app.example.com:x@",
      "https://app.example.com%40",
      "https://app.example.com\\@",
    ],
    ...[
      "https://app.example.com.",
      "https://app.example.com\\.",
      "//app.example.com@",
      "https://@",
      "https://:@",
      "https:@",
    ],
    ...[
      "https://app.example.com:443@",
      "https://docs.example.com@",
      "https:app.example.com@",
      "https://app.example.com\t@",
    ],
    ...["https://app.example.com#@", "https://app.example.com?@", "/\u2044", "\uff0f\uff0f", "/\uff0f", "\u2215\u2215"],
  ];
  const ends = ["", "/", "/v1", "?x=/", "#/"];
  for (const start of starts) for (const host of evil) for (const end of ends) yield start + host + end;
}

test("no spelling leads to a foreign origin", () => {
  const spellings = [...hostileSpellings()];
  expect(spellings.length).toBeGreaterThan(500);
  let refused = 0;
  for (const text of spellings) {
    const found = destination(text);
    if (found === undefined) {
      refused++;
      continue;
    }
    // A browser that resolves the header against any page comes to the same origin.
    const url = new URL(found, "https://evil.example/page");
    expect([OWN, ALLOWED], JSON.stringify(text)).toContain(url.origin);
    expect(url.username + url.password).toBe("");
  }
  expect(refused).toBeGreaterThan(spellings.length / 2);
});

test("a destination has at most 1,024 characters", () => {
  expect(destination(`/${"a".repeat(1023)}`)).toBeDefined();
  expect(destination(`/${"a".repeat(1024)}`)).toBeUndefined();
});

test.each([
  "",
  "orders",
  "?x",
  "/a\\b",
  "/a\tb",
  "/a b",
  "/caf\u00e9",
  "https://evil.example@app.example.com/",
  "https://:x@app.example.com/",
  "https://docs.example.com:8443/",
  "http://app.example.com/",
])("%j is refused", (text) => {
  expect(destination(text)).toBeUndefined();
});
