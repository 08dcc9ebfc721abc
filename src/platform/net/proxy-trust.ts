/** Decides which proxies in front may report where a request comes from, and which of their reports count. */
import { BlockList, isIP, isIPv4 } from "node:net";
import { hostOf } from "./subnet.ts";

/** Returns whether a network address is that of a trusted proxy. */
type IsProxy = (address: string) => boolean;

/** Proxies that are trusted: this many in front of the service (0: none), or those with certain addresses. */
export type ProxyTrust = number | IsProxy;

/** The length of the longest IPv6 address with brackets, zone and port. */
const MAX_ADDRESS_LENGTH = 128;

/** The length of the prefix of all IPv4-mapped addresses (RFC 4291 section 2.5.5.2), which sockets for both versions show. */
const MAPPED_BITS = 96;

type Network = { readonly address: string; readonly prefix: number };

/**
 * Parses `10.0.0.0/8`, `fd00::/8` or a single address. A network of all addresses is undefined too: a client could then report any address
 * as its own.
 */
function parseNetwork(text: string): Network | undefined {
  const [, given = "", bits] = /^([\da-f.:]+)(?:\/(\d{1,3}))?$/i.exec(text) ?? [];
  const address = hostOf(given);
  if (address === "") return undefined;
  const length = isIPv4(address) ? 32 : 128;
  const prefix = bits === undefined ? length : Number(bits) - (address === given ? 0 : MAPPED_BITS);
  return prefix >= 1 && prefix <= length ? { address, prefix } : undefined;
}

export const isNetwork = (text: string): boolean => parseNetwork(text) !== undefined;

const familyOf = (address: string) => (isIPv4(address) ? "ipv4" : "ipv6");

/** @param networks a number of proxies, or texts for which `isNetwork` is true */
export const proxyTrust = (networks: number | readonly string[]): ProxyTrust =>
  typeof networks === "number" ? networks : isProxyIn(networks);

/** @param networks texts for which `isNetwork` is true */
export function isProxyIn(networks: readonly string[]): IsProxy {
  const list = new BlockList();
  for (const text of networks) {
    const network = parseNetwork(text);
    if (network !== undefined) list.addSubnet(network.address, network.prefix, familyOf(network.address));
  }
  return (given) => {
    const address = hostOf(given);
    return address !== "" && list.check(address, familyOf(address));
  };
}

/** The client, and how many trusted proxies passed its request on. */
type ForwardedClient = { readonly address: string | undefined; readonly proxies: number };

/**
 * Determines the client from the peer of the connection and `X-Forwarded-For`. Each proxy appends the address from which it received the
 * request, so entries further left may come from the client itself. With networks, the entries count from the right for as long as the
 * address before is that of a trusted proxy. An entry that is no address ends the search, and the proxy that reported it is the result.
 *
 * @param peer the address at the other end of the connection
 */
export function forwardedClient(
  peer: string | undefined,
  forwardedFor: string | undefined,
  trust: ProxyTrust,
): ForwardedClient {
  if (typeof trust === "number") {
    const entry = forwardedFor === undefined ? undefined : entryAt(forwardedFor, trust);
    return { address: (entry === undefined ? undefined : parseAddress(entry)) ?? peer, proxies: trust };
  }
  let address = peer;
  let rest = forwardedFor;
  let proxies = 0;
  while (address !== undefined && trust(address)) {
    proxies++;
    if (rest === undefined) break;
    const comma = rest.lastIndexOf(",");
    const entry = parseAddress(rest.slice(comma + 1).trim());
    if (entry === undefined) break;
    address = entry;
    rest = comma === -1 ? undefined : rest.slice(0, comma);
  }
  return { address, proxies };
}

/** Returns the entry that the outermost of some proxies has appended to a header; the first one if there are fewer. */
export function entryAt(header: string, proxies: number): string | undefined {
  if (proxies === 0) return undefined;
  const entries = header.split(",");
  return entries[Math.max(0, entries.length - proxies)]?.trim();
}

/** Returns a forwarded IP address without the port that some proxies add; undefined for anything else. */
function parseAddress(text: string): string | undefined {
  if (text.length > MAX_ADDRESS_LENGTH) return undefined;
  if (isIP(text) !== 0) return text;
  const address = /^\[([^\]]*)\](?::\d+)?$/.exec(text)?.[1] ?? /^([\d.]+):\d+$/.exec(text)?.[1];
  return address !== undefined && isIP(address) !== 0 ? address : undefined;
}
