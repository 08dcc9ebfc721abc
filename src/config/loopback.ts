import { isIP } from "node:net";

/**
 * Returns whether a host is this machine. The host is a name or an address, as in a URL, in a configuration or of a connection. No name is
 * resolved.
 */
export function isLoopback(host: string): boolean {
  const name = host.replace(/^\[(.*)\]$/, "$1").replace(/^::ffff:/, "");
  return name === "localhost" || name === "::1" || (isIP(name) === 4 && name.startsWith("127."));
}
