import { expect, test } from "vitest";
import { type AddressClass, classifyAddress, parseTarget } from "../../../../src/service/signals/send/target.ts";

const CLASSES: Readonly<Record<AddressClass, readonly string[]>> = {
  public: [
    "1.1.1.1",
    "172.15.255.255",
    "172.32.0.0",
    "100.63.255.255",
    "2606:4700::1111",
    "::ffff:1.1.1.1",
    "64:ff9b::101:101",
  ],
  private: [
    ...["10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "100.64.0.1", "127.0.0.1", "127.255.255.254"],
    ...["::1", "fc00::1", "fd12:3456::1", "::ffff:127.0.0.1", "::ffff:7f00:1", "::ffff:10.0.0.1", "64:ff9b::a00:1"],
  ],
  never: [
    ...[
      "0.0.0.0",
      "0.1.2.3",
      "169.254.169.254",
      "192.0.0.192",
      "192.0.2.1",
      "198.18.0.1",
      "224.0.0.1",
      "255.255.255.255",
    ],
    ...[
      "::",
      "fe80::1",
      "fe80::1%lo",
      "2001:4860::1%lo",
      "fec0::1",
      "ff02::1",
      "2001:db8::1",
      "2002:7f00:1::",
      "2001:0:1::1",
      "64:ff9b:1::1",
    ],
    ...[
      "::ffff:169.254.169.254",
      "64:ff9b::a9fe:a9fe",
      "::ffff:0.0.0.0",
      "::7f00:1",
      "fd00:ec2::254",
      "fd00:ec2::23",
      "fd20:ce::254",
      "100.100.100.200",
      "168.63.129.16",
    ],
    ...["", "localhost", "1.2.3", "2130706433"],
  ],
};

test.each(Object.entries(CLASSES))("an address that is %s is recognised", (expected, addresses) => {
  expect(addresses.filter((address) => classifyAddress(address) !== expected)).toEqual([]);
});

test.each([
  ["0.0.0.0", "0.255.255.255"],
  ["169.254.0.0", "169.254.255.255"],
  ["192.0.0.0", "192.0.0.255"],
  ["192.0.2.0", "192.0.2.255"],
  ["192.88.99.0", "192.88.99.255"],
  ["198.18.0.0", "198.19.255.255"],
  ["198.51.100.0", "198.51.100.255"],
  ["203.0.113.0", "203.0.113.255"],
  ["224.0.0.0", "255.255.255.255"],
])("nothing is sent to any address from %s to %s, and its neighbours are public", (first, last) => {
  const numberOf = (address: string) => address.split(".").reduce((sum, byte) => sum * 256 + Number(byte), 0);
  const classAt = (number: number) =>
    classifyAddress([24, 16, 8, 0].map((shift) => (number >>> shift) & 255).join("."));
  expect([first, last].map(classifyAddress)).toEqual(["never", "never"]);
  const neighbours = [numberOf(first) - 1, numberOf(last) + 1].filter((number) => number >= 0 && number < 2 ** 32);
  expect(neighbours.map(classAt)).toEqual(neighbours.map(() => "public"));
});

const REFUSED = [
  ...[
    "http://receiver.example/",
    "ftp://receiver.example/",
    "https://user:secret@receiver.example/",
    "https://user@receiver.example/",
    "https://:secret@receiver.example/",
    "https://a.example/#x",
  ],
  ...[
    "https://127.0.0.1/",
    "https://2130706433/",
    "https://0x7f.1/",
    "https://0177.0.0.1/",
    "https://127.1/",
    "https://0/",
  ],
  ...[
    "https://[::1]/",
    "https://[::ffff:127.0.0.1]/",
    "https://[::ffff:a9fe:a9fe]/",
    "https://[fe80::1]/",
    "https://[::]/",
  ],
  ...[
    "https://１２７.0.0.1/",
    "https://[64:ff9b::7f00:1]/",
    "https://a.example:0/",
    `https://a.example/${"x".repeat(2_048)}`,
    "x",
  ],
];

test("a URL that is not https, has credentials or a private address in any notation is refused", () => {
  expect(REFUSED.filter((url) => parseTarget(url, { allowPrivate: false }) !== undefined)).toEqual([]);
  expect(parseTarget("https://receiver.example:8443/hook?a=b", { allowPrivate: false })?.port).toBe("8443");
});

test("private addresses by configuration: http to them, never to public ones or metadata", () => {
  const urls = [
    "http://127.0.0.1/",
    "https://10.0.0.1/",
    "http://1.1.1.1/",
    "https://169.254.169.254/",
    "http://[fe80::1]/",
  ];
  expect(urls.map((url) => parseTarget(url, { allowPrivate: true }) !== undefined)).toEqual([
    true,
    true,
    false,
    false,
    false,
  ]);
});

test("a URL may have 2,048 characters", () => {
  const longest = "https://a.example/".padEnd(2_048, "x");
  const rules = { allowPrivate: false };
  expect([longest, `${longest}x`].map((url) => parseTarget(url, rules) !== undefined)).toEqual([true, false]);
});

test("with private addresses allowed, no other scheme than http and https is, and public IPv6 addresses are as before", () => {
  const urls = [
    "ftp://receiver.example/",
    "ftp://10.0.0.1/",
    "http://[2606:4700::1111]/",
    "https://[2606:4700::1111]/",
  ];
  expect(urls.map((url) => parseTarget(url, { allowPrivate: true }) !== undefined)).toEqual([
    ...[false, false, false, true],
  ]);
});
