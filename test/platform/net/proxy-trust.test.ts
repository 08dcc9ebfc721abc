/** Which proxies are trusted: the same decisions as those of Express, whose setting `trust proxy` has the same form. */
import { createRequire } from "node:module";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { forwardedClient, isNetwork, proxyTrust } from "../../../src/platform/net/proxy-trust.ts";
import { readConfig } from "../../../src/service/config/config.ts";

type ProxyAddr = (request: object, trust: (address: string, index: number) => boolean) => string;
const proxyaddr: ProxyAddr & { compile(networks: readonly string[]): (address: string) => boolean } = createRequire(
  createRequire(import.meta.url).resolve("express"),
)("proxy-addr");

const part = fc.integer({ min: 0, max: 255 });
/** Few first parts, so that addresses are often in the networks. */
const ipv4 = fc
  .tuple(fc.constantFrom(10, 11, 127, 192), fc.constantFrom(0, 1, 168), part, part)
  .map((parts) => parts.join("."));
const ipv6 = fc
  .tuple(fc.constantFrom("fd00", "fd01", "fe80", "2001"), fc.integer({ min: 1, max: 0xffff }))
  .map(([first, last]) => `${first}::${last.toString(16)}`);
const mapped = ipv4.map((address) => `::ffff:${address}`);
const address = fc.oneof(ipv4, ipv6, mapped, fc.constant("::1"));
/** No network of IPv6 is so large that it has the mapped addresses, which Express would count among it. */
const network = fc.oneof(
  fc.tuple(ipv4, fc.integer({ min: 1, max: 32 })).map(([base, bits]) => `${base}/${bits}`),
  fc.tuple(ipv6, fc.integer({ min: 16, max: 128 })).map(([base, bits]) => `${base}/${bits}`),
  fc.tuple(mapped, fc.integer({ min: 97, max: 128 })).map(([base, bits]) => `${base}/${bits}`),
  address,
);

test("a request comes from whom Express takes for its client", () => {
  fc.assert(
    fc.property(
      fc.array(network, { minLength: 1, maxLength: 3 }),
      address,
      fc.array(address, { maxLength: 4 }),
      (networks, peer, entries) => {
        const forwardedFor = entries.length === 0 ? undefined : entries.join(", ");
        const request = { headers: { "x-forwarded-for": forwardedFor }, socket: { remoteAddress: peer } };
        const expected = proxyaddr(request, proxyaddr.compile(networks));
        expect(forwardedClient(peer, forwardedFor, proxyTrust(networks)).address).toBe(expected);
      },
    ),
    { numRuns: 2_000 },
  );
});

describe("TRUST_PROXY", () => {
  test.each([
    ["10.0.0.0/8,127.0.0.1", ["10.0.0.0/8", "127.0.0.1"]],
    ["fd00::/8, ::1, ::ffff:10.0.0.0/104", ["fd00::/8", "::1", "::ffff:10.0.0.0/104"]],
    ["0", 0],
    ["2", 2],
  ])("%s is accepted", (text, value) => {
    expect(readConfig({ TRUST_PROXY: text }).trustProxy).toEqual(value);
  });

  test.each([
    "true",
    "10.0.0.0/33",
    "10.0.0",
    "fd00::/129",
    "::ffff:10.0.0.0/95",
    "0.0.0.0/0",
    "::/0",
    "10.0.0.0/8,",
    "nginx",
    "fe80::1%eth0",
  ])("%s is a fault", (text) => {
    expect(() => readConfig({ TRUST_PROXY: text })).toThrow(
      /^TRUST_PROXY (is neither a number of proxies nor a list|has an empty item)/,
    );
    expect(isNetwork(text)).toBe(false);
  });
});

test("a link-local proxy is known by its address without the zone", () => {
  expect(forwardedClient("fe80::1%eth0", "192.0.2.1", proxyTrust(["fe80::/10"])).address).toBe("192.0.2.1");
});
