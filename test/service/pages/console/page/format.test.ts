/** How the console writes times, devices and reasons. */
import { expect, test } from "vitest";
import { RevocationReason } from "../../../../../gen/auth/admin/v1/session_admin_pb.ts";
import {
  absolute,
  ago,
  bindingOf,
  deviceOf,
  msOf,
  nameBeside,
  span,
  visible,
  whyEnded,
} from "../../../../../src/service/pages/console/page/format.ts";

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const NOW = 1_800_000_000_000;

test.each([
  [0, "just now"],
  [-(MINUTE - 1), "just now"],
  [MINUTE - 1, "in less than a minute"],
  [-MINUTE, "1 minute ago"],
  [MINUTE, "in 1 minute"],
  [-(HOUR - MINUTE), "59 minutes ago"],
  [-HOUR, "1 hour ago"],
  [-(DAY - HOUR), "23 hours ago"],
  [-DAY, "yesterday"],
  [14 * DAY, "in 14 days"],
])("%d ms from now is %s", (ms, text) => {
  expect(ago(NOW + ms, NOW)).toBe(text);
});

test.each([
  [0, "0 seconds"],
  [SECOND - 1, "0 seconds"],
  [SECOND, "1 second"],
  [MINUTE - 1, "59 seconds"],
  [MINUTE, "1 minute"],
  [2 * HOUR - 1, "1 hour"],
  [2 * HOUR, "2 hours"],
  [DAY, "1 day"],
  [12.5 * DAY, "12 days"],
])("a span of %d ms is %s", (ms, text) => {
  expect(span(ms)).toBe(text);
});

test("a time is written to the second, and an absent one is none", () => {
  expect(absolute(NOW)).not.toBe(absolute(NOW + SECOND));
  expect(absolute(NOW)).toContain("2027");
  expect(msOf(undefined)).toBeUndefined();
});

const onIphone = (browser: string) =>
  `Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 ${browser} Mobile/15E148 Safari/604.1`;
const chromium = (system: string, more = "") =>
  `Mozilla/5.0 (${system}) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/143.0.0.0 Safari/537.36${more}`;

test.each([
  [chromium("Windows NT 10.0; Win64; x64"), "Chrome on Windows"],
  [chromium("Windows NT 10.0; Win64; x64", " Edg/143.0.0.0"), "Edge on Windows"],
  [chromium("Windows NT 10.0; Win64; x64", " OPR/120.0.0.0"), "Opera on Windows"],
  [chromium("X11; CrOS x86_64 16328.55.0"), "Chrome on ChromeOS"],
  [chromium("Linux; Android 15; K"), "Chrome on Android"],
  [
    "Mozilla/5.0 (Linux; Android 15) SamsungBrowser/28.0 Chrome/130 Mobile Safari/537.36",
    "Samsung Internet on Android",
  ],
  ["Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", "Firefox on Linux"],
  ["Mozilla/5.0 (Macintosh; Intel Mac OS X 15_0) Version/18.0 Safari/605.1.15", "Safari on macOS"],
  ["Mozilla/5.0 (iPad; CPU OS 18_0 like Mac OS X) Version/18.0 Safari/605.1.15", "Safari on iPad"],
  [onIphone("Version/18.0"), "Safari on iPhone"],
  [onIphone("CriOS/143.0"), "Chrome on iPhone"],
  [onIphone("FxiOS/140.0"), "Firefox on iPhone"],
  ["curl/8.5.0", "curl"],
  ["Firefox of my own, on Linux", "Firefox of my own, on Linux"],
])("%s is %s", (userAgent, device) => {
  expect(deviceOf({ userAgent, displayName: "office" })).toBe(device);
});

test("a user agent that is not known stays as it is, cut; without one the name counts", () => {
  expect(deviceOf({ userAgent: "x".repeat(48), displayName: "" })).toBe("x".repeat(48));
  expect(deviceOf({ userAgent: "x".repeat(49), displayName: "" })).toBe(`${"x".repeat(47)}…`);
  expect(deviceOf({ userAgent: "", displayName: "office" })).toBe("office");
  expect(deviceOf()).toBe("Unknown device");
});

test("the name of a device is beside its user agent, and nowhere twice", () => {
  expect(nameBeside({ userAgent: "curl/8", displayName: "office" })).toBe("office");
  expect(nameBeside({ userAgent: "", displayName: "office" })).toBe("");
  expect(nameBeside(undefined)).toBe("");
});

test("what hides or reorders text is visible", () => {
  expect(visible("a\u202eb\u0000c\u2028d\u2029e\ud800f\u{e0041}é")).toBe(
    "a\\u{202e}b\\u{0}c\\u{2028}d\\u{2029}e\\u{d800}f\\u{e0041}é",
  );
});

test("every reason has a text of its own, and one of a later version a text at all", () => {
  const reasons = Object.values(RevocationReason).filter((reason) => typeof reason === "number");
  expect(new Set(reasons.map(whyEnded)).size).toBe(reasons.length);
  expect(whyEnded(999 as RevocationReason)).toBe("ended");
});

test("a device key is bound, registered, or there is none", () => {
  expect([{ bound: true }, { bound: false }, undefined].map(bindingOf)).toEqual(["bound", "registered", "not bound"]);
});
