import { BlockList, isIP, isIPv6 } from "node:net";
import { isNetwork } from "../../platform/net/proxy-trust.ts";
import type { AddFault, Read } from "./reader.ts";
import {
  boolean,
  DAY_MS,
  duration,
  host,
  hostPattern,
  integer,
  invalid,
  list,
  type Parsed,
  readableFile,
  SECOND_MS,
  valid,
} from "./values.ts";

/** @param docsByDefault whether the public API describes itself if DOCS and REFLECTION are not set */
export function readListeners(read: Read, addFault: AddFault, docsByDefault: boolean) {
  const listeners = {
    host: read("HOST", host, "127.0.0.1"),
    port: read("PORT", integer(0, 65535), 8080),
    adminHost: read("ADMIN_HOST", host, "127.0.0.1"),
    adminAllowedHosts: read("ADMIN_ALLOWED_HOSTS", list(hostPattern), undefined),
    adminPort: read("ADMIN_PORT", integer(0, 65535), 8081),
    trustProxy: read("TRUST_PROXY", proxies, 0),
    tlsCertFile: read("TLS_CERT_FILE", readableFile, undefined),
    tlsKeyFile: read("TLS_KEY_FILE", readableFile, undefined),
    hstsMaxAgeMs: read("HSTS_MAX_AGE", duration(0, 3650 * DAY_MS), 365 * DAY_MS),
    adminTlsClientCaFile: read("ADMIN_TLS_CLIENT_CA_FILE", readableFile, undefined),
    docs: read("DOCS", boolean, docsByDefault),
    reflection: read("REFLECTION", boolean, docsByDefault),
    maxBodyBytes: read("MAX_BODY_BYTES", integer(1024, 16 * 1024 * 1024), 64 * 1024),
    maxConnections: read("MAX_CONNECTIONS", integer(16, 1_000_000), 10_000),
    maxConnectionsPerAddress: read("MAX_CONNECTIONS_PER_ADDRESS", integer(1, 1_000_000), undefined),
    requestTimeoutMs: read("REQUEST_TIMEOUT", duration(SECOND_MS, 600 * SECOND_MS), 20 * SECOND_MS),
    drainDelayMs: read("DRAIN_DELAY", duration(0, 600 * SECOND_MS), 5 * SECOND_MS),
    shutdownTimeoutMs: read("SHUTDOWN_TIMEOUT", duration(0, 600 * SECOND_MS), 10 * SECOND_MS),
    jwksMaxAgeMs: read("JWKS_MAX_AGE", duration(SECOND_MS, DAY_MS), 300 * SECOND_MS),
  };
  if ((listeners.tlsCertFile === undefined) !== (listeners.tlsKeyFile === undefined)) {
    addFault("TLS_CERT_FILE and TLS_KEY_FILE must be set together");
  }
  if (listeners.adminTlsClientCaFile !== undefined && listeners.tlsCertFile === undefined) {
    addFault("ADMIN_TLS_CLIENT_CA_FILE needs TLS_CERT_FILE and TLS_KEY_FILE: without TLS there are no certificates");
  }
  const isSamePort = listeners.port !== 0 && listeners.port === listeners.adminPort;
  if (isSamePort && !areApart(listeners.host, listeners.adminHost)) {
    addFault("ADMIN_PORT must differ from PORT, unless HOST and ADMIN_HOST are two addresses");
  }
  return listeners;
}

/**
 * Whether two hosts never share a socket address. A name may stand for any address. The system would not refuse the second listener of
 * workers, which share their ports, and calls would reach one API instead of the other.
 */
function areApart(one: string, other: string): boolean {
  return (
    ![one, other].some((name) => isIP(name) === 0 || isSame("0.0.0.0", name) || isSame("::", name)) &&
    !isSame(one, other)
  );
}

/** Returns whether two addresses are one: `::1` and `0:0::1`, or an IPv4 address and the same one within IPv6. */
function isSame(one: string, other: string): boolean {
  const spellings = new BlockList();
  spellings.addAddress(one, familyOf(one));
  return spellings.check(other, familyOf(other));
}

const familyOf = (address: string) => (isIPv6(address) ? "ipv6" : "ipv4");

const network = (text: string): Parsed<string> =>
  isNetwork(text)
    ? valid(text)
    : invalid("is neither a number of proxies nor a list of networks and addresses such as 10.0.0.0/8,127.0.0.1");

/** Parses how many proxies in front are trusted, or their networks. */
function proxies(text: string): Parsed<number | readonly string[]> {
  return /^\d+$/.test(text) ? integer(0, 16)(text) : list(network)(text);
}
