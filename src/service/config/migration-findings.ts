import { isIP } from "node:net";
import type { Config } from "./config.ts";
import { type ConfigFinding, findingsAbout } from "./finding.ts";
import { isLoopback } from "./loopback.ts";

const { warning } = findingsAbout("configuration");

/** Finds a way to the application on which others may read the old cookies. */
export function migrationFindings({ migrateCookies, migrateUrl }: Config): readonly ConfigFinding[] {
  if (migrateCookies.length === 0 || migrateUrl === undefined) return [];
  const { protocol, hostname } = new URL(migrateUrl);
  if (protocol === "https:" || isLoopback(hostname) || !isPublicName(hostname)) return [];
  const found = "MIGRATE_URL: old cookies, which are credentials, go to another network in clear text";
  return [warning(found, "use https, or an address of the internal network")];
}

/** Names without a dot, and those of domains that no public resolver knows, are of the internal network, and so are private addresses. */
function isPublicName(host: string): boolean {
  if (isIP(host.replace(/^\[|\]$/g, "")) !== 0)
    return !/^(10\.|192\.168\.|172\.(1[6-9]|2\d|3[01])\.|\[f[cd])/.test(host);
  return host.includes(".") && !/\.(svc|local|internal|localhost|home\.arpa)$/.test(host);
}
