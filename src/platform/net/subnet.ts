import { isIPv6 } from "node:net";

/** The length of the longest text that is parsed as an address. A proxy may forward any text in place of an address. */
const MAX_LENGTH = 64;

/**
 * Returns the part of the network that one subscriber holds, by which connections and attempts are counted: an IPv4 address, or the /64 of
 * an IPv6 address, since a host can choose any address of its /64 (RFC 6177, RFC 7721). An IPv4-mapped address (RFC 4291 section 2.5.5.2)
 * counts as its IPv4 address. Any other text, which a proxy may forward, is returned unchanged, at most 64 characters of it.
 */
export function subnetOf(address: string): string {
  if (!address.includes(":") || address.length > MAX_LENGTH) return address.slice(0, MAX_LENGTH);
  const bare = address.split("%", 1)[0] as string;
  if (!isIPv6(bare)) return address;
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(bare);
  if (mapped !== null) return mapped[1] as string;
  const [head = "", tail] = bare.split("::");
  const groups = head === "" ? [] : head.split(":");
  if (tail !== undefined && groups.length < 4) {
    const after = tail === "" ? [] : tail.split(":");
    // An IPv4 address at the end of an IPv6 address takes the place of two groups.
    const length = after.length + (tail.includes(".") ? 1 : 0);
    const zeros = Array.from({ length: 8 - groups.length - length }, () => "0");
    groups.push(...zeros, ...after);
  }
  return `${groups
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(":")}::/64`;
}
