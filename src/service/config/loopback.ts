import { isIP } from "node:net";

/** Returns whether a host name or an address is this machine. It resolves no name. */
export function isLoopback(host: string): boolean {
  const name = host.replace(/^\[(.*)\]$/, "$1").replace(/^::ffff:/, "");
  return name === "localhost" || name === "::1" || (isIP(name) === 4 && name.startsWith("127."));
}
