import { getPublicSuffix } from "tldts";

/**
 * Returns whether anybody may have a name below this domain (Public Suffix List): `com`, `co.uk`, `github.io`. A single label that is on no
 * list counts as one, except `localhost`.
 */
export function isPublicSuffix(domain: string): boolean {
  const name = domain.replace(/^\./, "").toLowerCase();
  return name !== "localhost" && getPublicSuffix(name, { allowPrivateDomains: true }) === name;
}
