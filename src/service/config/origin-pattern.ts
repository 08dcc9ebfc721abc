/**
 * Parses the origins of `ALLOWED_ORIGINS`, in the form in which browsers send them (RFC 6454), or patterns of them, which
 * `platform/net/origins.ts` matches.
 */
import { isIP } from "node:net";
import { isPublicSuffix } from "./public-suffix.ts";
import { invalid, type Parsed, valid } from "./values.ts";

/** Schemes of URLs without an origin of their own: browsers send `null` for their pages. */
const OPAQUE = /^(?:about|blob|data|file|ftp|javascript|ws|wss):/;
const CUSTOM = /^[a-z][a-z0-9+.-]*:\/\/[a-z0-9._-]+(?::\d{1,5})?$/;

export function originPattern(text: string): Parsed<string> {
  if (text === "*") return invalid("may not be *: credentials are never shared with every origin");
  const [, host] = /^https?:\/\/([^/]+):\*$/.exec(text) ?? [];
  if (host !== undefined)
    return isThisMachine(host) ? valid(text) : invalid("has any port (:*) for another host than localhost");
  const [, scheme, domain] = /^(https?:\/\/)\*\.(.+)$/.exec(text) ?? [];
  if (domain !== undefined) return belowDomain(text, `${scheme}${domain}`);
  if (text.includes("*")) return invalid("may have a star only before the whole domain, such as https://*.example.com");
  return isOrigin(text) ? valid(text) : invalid("has an item that is not an origin such as https://app.example.com");
}

const isThisMachine = (host: string) => ["localhost", "127.0.0.1", "[::1]"].includes(host);

function belowDomain(text: string, parent: string): Parsed<string> {
  const hostname = isOrigin(parent) ? (URL.parse(parent)?.hostname ?? "") : "";
  if (hostname === "" || hostname.includes("*") || hostname.startsWith("[") || isIP(hostname) !== 0) {
    return invalid("has an item that is not an origin such as https://*.example.com");
  }
  if (isPublicSuffix(hostname) || hostname === "localhost") {
    return invalid(`has a star below ${hostname}, where anybody may have a name`);
  }
  return valid(text);
}

function isOrigin(text: string): boolean {
  if (/^https?:/.test(text)) return URL.parse(text)?.origin === text;
  return CUSTOM.test(text) && !OPAQUE.test(text);
}
