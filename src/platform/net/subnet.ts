import { isIP, isIPv4, isIPv6 } from "node:net";

/** The length of the longest text that is parsed as an address. A proxy may forward any text in place of an address. */
const MAX_LENGTH = 64;

/** Matches an IPv4-mapped address (RFC 4291 section 2.5.5.2). */
const MAPPED = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i;

/**
 * Returns the part of the network that one subscriber holds, by which connections and attempts are counted: an IPv4 address, or the /64 of
 * an IPv6 address, since a host can choose any address of its /64 (RFC 6177, RFC 7721). An IPv4-mapped address counts as its IPv4 address.
 * Any other text, which a proxy may forward, is returned unchanged, at most 64 characters of it.
 */
export function subnetOf(address: string): string {
  if (!address.includes(":") || address.length > MAX_LENGTH) return address.slice(0, MAX_LENGTH);
  const host = hostOf(address);
  if (host === "") return address;
  return isIPv4(host) ? host : `${groupsOf(host, 4)}::/64`;
}

/** Returns an address without its zone, and an IPv4-mapped address as its IPv4 address; '' for a text that is no address. */
export function hostOf(address: string): string {
  const bare = address.slice(0, MAX_LENGTH).split("%", 1)[0] as string;
  return isIP(bare) === 0 ? "" : (MAPPED.exec(bare)?.[1] ?? bare);
}

/** Returns the network of an address that tells a place but no subscriber: a /24 of IPv4, a /48 of IPv6; '' for any other text. */
export function placeOf(address: string): string {
  const host = hostOf(address);
  if (isIPv6(host)) return `${groupsOf(host, 3)}::/48`;
  return host === "" ? "" : `${host.slice(0, host.lastIndexOf("."))}.0/24`;
}

/** Returns the first groups of an IPv6 address, at most 4, in their shortest form. */
function groupsOf(address: string, count: number): string {
  const [head = "", tail] = address.split("::");
  const groups = head === "" ? [] : head.split(":");
  if (tail !== undefined && groups.length < 4) {
    const after = tail === "" ? [] : tail.split(":");
    // An IPv4 address at the end of an IPv6 address takes the place of two groups.
    const length = after.length + (tail.includes(".") ? 1 : 0);
    const zeros = Array.from({ length: 8 - groups.length - length }, () => "0");
    groups.push(...zeros, ...after);
  }
  return groups
    .slice(0, count)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(":");
}
