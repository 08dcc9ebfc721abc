/** Decides where signals may be sent to. Operators configure host names, but the owners of the names choose their addresses. */
import { BlockList, isIP } from "node:net";

const MAX_URL_LENGTH = 2_048;

export type TargetRules = {
  /** Whether private addresses are allowed, both with https and with http. A public address is never allowed with http. */
  readonly allowPrivate: boolean;
};

export function isAllowed(address: string, secure: boolean, { allowPrivate }: TargetRules): boolean {
  const kind = classifyAddress(address);
  return kind === "public" ? secure : kind === "private" && allowPrivate;
}

/**
 * Returns the URL of a receiver, or undefined if signals may never be sent to it. The URL parser has converted decimal, octal and
 * hexadecimal hosts to addresses (WHATWG URL section 3.5). Names are resolved, and their addresses checked, when a connection is made.
 */
export function parseTarget(text: string, rules: TargetRules): URL | undefined {
  if (text.length > MAX_URL_LENGTH || !URL.canParse(text)) return undefined;
  const url = new URL(text);
  const secure = url.protocol === "https:";
  if (!secure && !(rules.allowPrivate && url.protocol === "http:")) return undefined;
  if (url.username !== "" || url.password !== "" || url.hash !== "" || url.port === "0") return undefined;
  const host = url.hostname.replace(/[[\]]/g, "");
  return isIP(host) !== 0 && !isAllowed(host, secure, rules) ? undefined : url;
}

/** `private`: loopback, and networks of an organisation. `never`: link-local, metadata services, multicast, and addresses of no host. */
export type AddressClass = "public" | "private" | "never";

/** RFC 1918 and RFC 6598, loopback (RFC 1122 section 3.2.1.3, RFC 4291 section 2.5.3) and unique local addresses (RFC 4193). */
const privateList = listOf("10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 100.64.0.0/10 127.0.0.0/8 ::1/128 fc00::/7");
const neverList = listOf(
  // The special-purpose registries (RFC 6890).
  "0.0.0.0/8 169.254.0.0/16 192.0.0.0/24 192.0.2.0/24 192.88.99.0/24 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24",
  "224.0.0.0/4 240.0.0.0/4",
  // Further addresses at which cloud providers serve the metadata of machines.
  "100.100.100.200/32 168.63.129.16/32 fd00:ec2::23/128 fd00:ec2::254/128 fd20:ce::254/128",
  // The IPv6 ranges for Teredo, benchmarking, ORCHID, documentation and 6to4.
  "2001::/23 2001:db8::/32 2002::/16 3fff::/20",
);
/** The range of global unicast addresses. IPv6 addresses outside of it are not assigned to hosts of the internet. */
const globalUnicast = listOf("2000::/3");
/** IPv6 addresses whose last 32 bits are an IPv4 address: mapped (RFC 4291 section 2.5.5.2) and NAT64 (RFC 6052 section 2.1). */
const embedding = listOf("::ffff:0:0/96 64:ff9b::/96");

export function classifyAddress(text: string): AddressClass {
  const family = isIP(text);
  if (family === 0 || text.includes("%")) return "never";
  if (family === 4) return classifyListed(text, "ipv4", "public");
  if (embedding.check(text, "ipv6")) return classifyListed(lastFourBytes(text), "ipv4", "public");
  return classifyListed(text, "ipv6", globalUnicast.check(text, "ipv6") ? "public" : "never");
}

function classifyListed(address: string, family: "ipv4" | "ipv6", unlisted: AddressClass): AddressClass {
  if (neverList.check(address, family)) return "never";
  return privateList.check(address, family) ? "private" : unlisted;
}

/** @param texts ranges in CIDR notation, separated by spaces */
function listOf(...texts: readonly string[]): BlockList {
  const list = new BlockList();
  for (const range of texts.flatMap((text) => text.split(" "))) {
    const [network = "", prefix] = range.split("/");
    list.addSubnet(network, Number(prefix), network.includes(":") ? "ipv6" : "ipv4");
  }
  return list;
}

/** Returns the IPv4 address at the end of an IPv6 address, which the URL parser has written in its canonical form (RFC 5952). */
function lastFourBytes(address: string): string {
  const canonical = new URL(`http://[${address}]`).hostname.slice(1, -1);
  const groups = (canonical.split("::").at(-1) as string).split(":");
  const [high = 0, low = 0] = ["0", ...groups].slice(-2).map((group) => Number.parseInt(group || "0", 16));
  return [high >> 8, high & 0xff, low >> 8, low & 0xff].join(".");
}
