import { createRequire } from "node:module";

const require = createRequire(import.meta.url);

/** The Public Suffix List takes 5 MB of memory and few configurations need it, so it is loaded when it is first used. */
const suffixes = (): typeof import("tldts") => require("tldts");

/**
 * Returns whether anybody may have a name below this domain (Public Suffix List): `com`, `co.uk`, `github.io`. A single label that is on no
 * list counts as one, except `localhost`.
 */
export function isPublicSuffix(domain: string): boolean {
  const name = domain.replace(/^\./, "").toLowerCase();
  return name !== "localhost" && suffixes().getPublicSuffix(name, { allowPrivateDomains: true }) === name;
}

/** Returns the domain right below the public suffix of a host, which browsers call its site; null if it has none. */
export function registrableDomain(host: string): string | null {
  return suffixes().getDomain(host, { allowPrivateDomains: true });
}
