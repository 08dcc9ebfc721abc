/** TLS to Redis, and which name its certificate must have. */
import { isIP } from "node:net";
import { type ConnectionOptions, checkServerIdentity } from "node:tls";
import type { Redis } from "ioredis";
import type { RedisTarget } from "../../config/redis-url.ts";

/** Returns the options of TLS to the configured hosts; undefined for connections without TLS. */
export function tlsOptions({ tls, ca }: RedisTarget): ConnectionOptions | undefined {
  return tls ? { ...(ca === undefined ? {} : { ca }) } : undefined;
}

/**
 * Accepts the certificate of the cluster's endpoint from a node that the cluster lists by its address. The certificates of rented clusters
 * often name only the endpoint. A certificate that names the address is accepted, too.
 */
export function acceptEndpoint(node: Redis, target: RedisTarget): void {
  const { host = "" } = node.options;
  const endpoint = target.nodes.find((given) => isIP(given.host) === 0)?.host;
  const options = tlsOptions(target);
  if (options === undefined || endpoint === undefined || isIP(host) === 0) return;
  node.options.tls = Object.assign(options, {
    servername: endpoint,
    checkServerIdentity: ((name, certificate) =>
      checkServerIdentity(host, certificate) && checkServerIdentity(name, certificate)) as typeof checkServerIdentity,
  });
}
