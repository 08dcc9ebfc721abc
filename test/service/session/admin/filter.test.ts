/** Which sessions match which conditions of a list. */
import { expect, test } from "vitest";
import {
  EVERY_SESSION,
  isSelective,
  matches,
  type SessionFilter,
} from "../../../../src/service/session/admin/filter.ts";
import { storeMs } from "../../../../src/service/session/time.ts";
import { NOW, sessionOf } from "../../../support/session/scripted.ts";

const SESSION = sessionOf({
  kind: "browser",
  client: { userAgent: "Mozilla/5.0 Firefox", ipAddress: "192.0.2.17", displayName: "Ann's Laptop" },
});

test.each<[SessionFilter, boolean]>([
  [{}, true],
  [{ subjectPrefix: "ali" }, true],
  [{ subjectPrefix: "lice" }, false],
  [{ clientId: "web" }, true],
  [{ clientId: "we" }, false],
  [{ kind: "browser" }, true],
  [{ kind: "mobile" }, false],
  [{ device: "FIREFOX" }, true],
  [{ device: "ann's lap" }, true],
  [{ device: "chrome" }, false],
  [{ ipAddress: "192.0.2.17" }, true],
  [{ ipAddress: "192.0.2.1" }, false],
  [{ ipAddress: "192.0.2." }, true],
  [{ ipAddress: "2.17" }, false],
  [{ ipAddress: "2001:db8:" }, false],
  [{ createdFrom: NOW }, true],
  [{ createdFrom: storeMs(NOW + 1) }, false],
  [{ createdBefore: NOW }, false],
  [{ createdBefore: storeMs(NOW + 1) }, true],
  [{ clientId: "web", device: "chrome" }, false],
])("%j matches: %s", (filter, isMatch) => {
  expect(matches(SESSION, filter)).toBe(isMatch);
});

test("the addresses of a network of IPv6 match by their beginning", () => {
  const session = { ...SESSION, client: { ...SESSION.client, ipAddress: "2001:db8::1" } };
  expect(["2001:db8:", "2001:db8", ":1"].map((ipAddress) => matches(session, { ipAddress }))).toEqual([
    true,
    false,
    false,
  ]);
});

test("a filter is selective if it has a condition other than times", () => {
  expect(isSelective(EVERY_SESSION)).toBe(false);
  expect(isSelective({ createdFrom: NOW, createdBefore: NOW })).toBe(false);
  for (const condition of [
    { subjectPrefix: "a" },
    { clientId: "a" },
    { kind: "browser" as const },
    { device: "a" },
    { ipAddress: "a" },
  ]) {
    expect(isSelective(condition)).toBe(true);
  }
});
