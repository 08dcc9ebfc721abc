import fc from "fast-check";
import { expect, test } from "vitest";
import { matchOrigins } from "../../../src/platform/net/origins.ts";
import { originPattern } from "../../../src/service/config/origin-pattern.ts";

test.each([
  "https://app.example.com",
  "http://localhost:3000",
  "https://*.example.com",
  "https://*.app.example.com:8443",
  "http://localhost:*",
  "http://127.0.0.1:*",
  "http://[::1]:*",
  "https://localhost:*",
  "capacitor://localhost",
  "tauri://localhost",
  "ionic://localhost",
  "app://bundle.example",
  "chrome-extension://abcdefghijklmnopabcdefghijklmnop",
])("%s is accepted", (text) => {
  expect(originPattern(text)).toEqual({ ok: true, value: text });
});

test.each([
  "*",
  "null",
  "https://*",
  "https://*.com",
  "https://*.co.uk",
  "https://*.github.io",
  "https://*.internal",
  "https://*.localhost",
  "https://*.192.0.2.1",
  "https://*.[::1]",
  "https://*.*.example.com",
  "https://a.*.example.com",
  "https://*app.example.com",
  "https://*.example.com/",
  "https://*.EXAMPLE.com",
  "https://*.example.com:*",
  "https://app.example.com:*",
  "http://localhost.example.com:*",
  "*://app.example.com",
  "https://app.example.com:443",
  "https://app.example.com/",
  "https://user@app.example.com",
  "capacitor://localhost/",
  "capacitor://*",
  "Capacitor://localhost",
  "file://localhost",
  "data://localhost",
  "javascript://localhost",
  "ws://localhost",
])("%s is refused", (text) => {
  expect(originPattern(text)).toMatchObject({ ok: false });
});

test("a pattern matches what it says, and nothing else", () => {
  const matches = matchOrigins([
    "https://*.example.com",
    "http://localhost:*",
    "http://[::1]:*",
    "capacitor://localhost",
  ]);
  const known = ["https://a.example.com", "https://a-1.b.example.com", "http://localhost", "http://localhost:1"];
  for (const origin of [...known, "http://[::1]:5173", "capacitor://localhost"]) {
    expect([origin, matches(origin)]).toEqual([origin, true]);
  }
  const strange = [
    ...["https://example.com", "https://.example.com", "https://a..example.com", "http://a.example.com"],
    ...[
      "https://a.example.com:8443",
      "https://aexample.com",
      "https://a.exampleXcom",
      "https://a.example.com.evil.net",
    ],
    ...["https://evil.net/.example.com", "https://evil.net#.example.com", "https://user@a.example.com", "null", ""],
    ...[
      "https://localhost:1",
      "http://localhost:",
      "http://localhost:x",
      "http://localhost.evil.net",
      "http://localhost:1.evil",
    ],
    ...["capacitor://localhost:1", "capacitor://other", "https://a.example.com\n", "\nhttps://a.example.com"],
  ];
  for (const origin of strange) expect([origin, matches(origin)]).toEqual([origin, false]);
});

test("below a domain are the hosts that end in it, by labels", () => {
  const matches = matchOrigins(["https://*.example.com"]);
  const label = fc.stringMatching(/^[a-z0-9_-]{1,8}$/);
  fc.assert(
    fc.property(
      fc.array(label, { minLength: 1, maxLength: 4 }),
      fc.constantFrom("example.com", "xexample.com", "example.co"),
      (labels, domain) => {
        expect(matches(`https://${labels.join(".")}.${domain}`)).toBe(domain === "example.com");
      },
    ),
  );
});
