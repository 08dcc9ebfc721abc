/** What a session keeps of a request: the form and the bounds of the address and the user agent. */
import { describe, expect, test } from "vitest";
import { cutLastSeen, wholeLastSeen } from "../../../../src/service/api/public/last-seen.ts";

const from = (address: string | undefined, userAgent?: string) => ({
  address: () => address,
  userAgent: () => userAgent,
});

describe("addresses", () => {
  test.each([
    ["192.0.2.17", "192.0.2.17", "192.0.2.0/24"],
    ["::ffff:192.0.2.17", "192.0.2.17", "192.0.2.0/24"],
    ["::FFFF:192.0.2.17", "192.0.2.17", "192.0.2.0/24"],
    ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2:3:4:5:6", "2001:db8:1::/48"],
    ["2001:0DB8:0001::6", "2001:0DB8:0001::6", "2001:db8:1::/48"],
    ["2001:db8::6", "2001:db8::6", "2001:db8:0::/48"],
    ["::1", "::1", "0:0:0::/48"],
    ["fe80::1%eth0", "fe80::1", "fe80:0:0::/48"],
    [`fe80::1%${"z".repeat(120)}`, "fe80::1", "fe80:0:0::/48"],
    ["::ffff:999.0.2.17", "", ""],
    ["192.0.2", "", ""],
    ["unknown", "", ""],
    ["_hidden:4711", "", ""],
    ["\r\n192.0.2.1", "", ""],
    ["", "", ""],
    [undefined, "", ""],
  ])("%s is kept as %s, or as %s", (address, whole, cut) => {
    expect(wholeLastSeen(from(address)).ipAddress).toBe(whole);
    expect(cutLastSeen(from(address)).ipAddress).toBe(cut);
  });
});

describe("user agents", () => {
  const CHROME =
    "Mozilla/5.0 (Linux; Android 14; SM-S918B) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.6943.49 Mobile Safari/537.36";
  test.each([
    [CHROME, CHROME, "Chrome on Android"],
    [
      "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.2 Safari/605.1.15",
      expect.any(String),
      "Safari on macOS",
    ],
    ["curl/8.9.1", "curl/8.9.1", "curl"],
    ["Example-App/3.2 (iPhone16,2; iOS 18.1) id=4711", expect.any(String), "Example-App on iPhone"],
    [`${"x".repeat(500)}/1`, expect.any(String), "x".repeat(32)],
    ["(nothing that is a product)", expect.any(String), ""],
    ["a\u0000b\r\n\u0085c\u202ed\u00e9\ud800", "abcd", "abcd"],
    // Node reads the bytes of a header as Latin-1, whatever they are.
    [Buffer.from([0x66, 0xff, 0xfe, 0x80, 0x6f]).toString("latin1"), "fo", "fo"],
    ["", "", ""],
    [undefined, "", ""],
  ])("%s", (given, whole, cut) => {
    expect(wholeLastSeen(from("192.0.2.1", given)).userAgent).toEqual(whole);
    expect(cutLastSeen(from("192.0.2.1", given)).userAgent).toBe(cut);
  });

  test("at most 512 bytes of one of 8 KiB are kept", () => {
    expect(wholeLastSeen(from("", `${"é".repeat(100)}${"u".repeat(8192)}`)).userAgent).toBe("u".repeat(512));
    expect(cutLastSeen(from("", "u".repeat(8192))).userAgent).toBe("u".repeat(32));
    // What is cut off is not looked at.
    expect(cutLastSeen(from("", `${"u".repeat(600)} Chrome/1 Windows`)).userAgent).toBe("u".repeat(32));
  });

  test("a source that knows neither is an unknown one", () => {
    expect(wholeLastSeen({ address: () => undefined })).toEqual({ userAgent: "", ipAddress: "" });
  });
});
