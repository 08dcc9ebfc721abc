/** Finds settings with which browsers drop the cookie, do not send it where it is needed, or are refused. */

import { isIP } from "node:net";
import type { Config } from "./config.ts";
import { isHostOnly, plainName } from "./cookie.ts";
import { type ConfigFinding, findingsAbout } from "./finding.ts";
import { isLoopback } from "./loopback.ts";
import { registrableDomain } from "./public-suffix.ts";

const { fault, warning } = findingsAbout("browsers");

type Examine = (config: Config, own: URL | undefined) => ConfigFinding | readonly ConfigFinding[] | undefined;

const EXAMINATIONS: readonly Examine[] = [
  lostSecureCookie,
  clearTextCookie,
  hiddenTls,
  foreignDomain,
  uselessNone,
  refusedSiblings,
  uselessOrigins,
  hiddenAccessCookie,
  uselessPrefix,
  plantableAccessCookie,
  absentDeviceCookies,
];

export function browserFindings(config: Config): readonly ConfigFinding[] {
  const own = config.issuer === undefined ? undefined : new URL(config.issuer);
  return EXAMINATIONS.flatMap((examine) => examine(config, own) ?? []);
}

function lostSecureCookie({ cookie }: Config, own?: URL) {
  if (own === undefined || !cookie.secure || own.protocol === "https:" || isTrustworthy(own.hostname)) return undefined;
  return fault(
    `ISSUER is ${own.origin}, without TLS: browsers drop a Secure cookie there`,
    "serve it by https and set ISSUER to that, or COOKIE_SECURE=false in a test",
  );
}

/** Browsers keep Secure cookies of this machine also without TLS (W3C Secure Contexts section 3.1). */
const isTrustworthy = (host: string) => isLoopback(host) || host.endsWith(".localhost");

function clearTextCookie({ cookie }: Config, own?: URL) {
  if (cookie.secure || own?.protocol !== "https:") return undefined;
  const found = "COOKIE_SECURE=false although ISSUER is https: the cookie travels in clear text, too";
  return warning(found, "remove COOKIE_SECURE");
}

function hiddenTls({ trustProxy, tlsCertFile }: Config, own?: URL) {
  if (own?.protocol !== "https:" || tlsCertFile !== undefined || trustProxy !== 0) return undefined;
  return fault(
    "ISSUER is https, but the service has no certificate and trusts no proxy: browsers without Fetch Metadata are refused as cross-site, " +
      "and all users share the proxy's address, its limits, and its place in the audit",
    "set TRUST_PROXY for the proxies in front, or TLS_CERT_FILE and TLS_KEY_FILE",
  );
}

function foreignDomain({ cookie }: Config, own?: URL) {
  const domain = cookie.domain?.replace(/^\./, "").toLowerCase();
  if (own === undefined || domain === undefined) return undefined;
  if (own.hostname === domain || own.hostname.endsWith(`.${domain}`)) return undefined;
  return fault(
    `COOKIE_DOMAIN is ${domain}, which ${own.hostname} (ISSUER) is not below: browsers drop the cookie`,
    `set it to ${own.hostname} or a domain above, or remove it`,
  );
}

const othersOf = ({ allowedOrigins }: Config, own?: URL) => allowedOrigins.filter((origin) => origin !== own?.origin);

function uselessNone(config: Config, own?: URL) {
  if (config.cookie.sameSite !== "None" || othersOf(config, own).length > 0) return undefined;
  return warning(
    "COOKIE_SAMESITE=None without ALLOWED_ORIGINS: no page on another site may call, so it only weakens the cookie",
    "remove COOKIE_SAMESITE",
  );
}

function refusedSiblings(config: Config, own?: URL) {
  const others = othersOf(config, own);
  if (config.allowSameSite || config.cookie.sameSite === "None" || others.length === 0) return undefined;
  return fault(
    `ALLOW_SAME_SITE=false refuses ${others.join(", ")} of ALLOWED_ORIGINS`,
    "remove ALLOW_SAME_SITE, or these origins",
  );
}

/** Finds allowed origins whose pages never send the cookie, because they are on another site. */
function uselessOrigins(config: Config): readonly ConfigFinding[] {
  const own = ownUrl(config);
  if (config.cookie.sameSite === "None" || own === undefined) return [];
  return config.allowedOrigins.flatMap((origin) => {
    const url = URL.parse(origin.replace(/:\*$/, ""));
    if (url === null || (url.protocol === own.protocol && isSameSite(url.hostname, own.hostname))) return [];
    const found = `ALLOWED_ORIGINS: ${origin} can never work, being another site than ${own.origin}`;
    if (!isTrustworthy(url.hostname) || !isTrustworthy(own.hostname) || url.hostname === own.hostname) {
      return warning(found, "its pages send the cookie only with COOKIE_SAMESITE=None");
    }
    const sites = `browsers take ${url.hostname} and ${own.hostname} for two sites: use one of them in both`;
    return warning(found, sites);
  });
}

/** Returns the origin at which browsers reach the service, if the configuration shows it. */
function ownUrl(config: Config): URL | undefined {
  if (config.issuer !== undefined) return new URL(config.issuer);
  if (config.trustProxy !== 0 || !isLoopback(config.host)) return undefined;
  const host = config.host.includes(":") ? `[${config.host}]` : config.host;
  return new URL(`${config.tlsCertFile === undefined ? "http" : "https"}://${host}`);
}

const isAddress = (host: string) => isIP(host.replace(/^\[|\]$/g, "")) !== 0;

/** Returns whether two hosts, or all below a domain, have one registrable domain. */
function isSameSite(a: string, b: string): boolean {
  const siteOf = (host: string) => registrableDomain(host.replace(/^\*\./, ""));
  return a === b || (siteOf(a) !== null && siteOf(a) === siteOf(b));
}

/** A server that renders pages at `/` refreshes an expired access cookie by the refresh token, which it must get there too. */
function hiddenAccessCookie({ cookie }: Config) {
  if (cookie.accessName === undefined || cookie.path === "/" || isHostOnly(cookie.name)) return undefined;
  return warning(
    `ACCESS_COOKIE without COOKIE_PATH=/: servers that render pages get no ${cookie.name}, so their users are signed out when an access token expires`,
    "set COOKIE_PATH=/ (docs/tasks/server-side.md)",
  );
}

/**
 * Finds the prefix `__Secure-`, which does not protect the cookie: measurements show that Chromium and Firefox let a page of a sibling
 * domain set such a cookie for the parent domain.
 */
function uselessPrefix({ cookie }: Config) {
  if (!/^__Secure-/i.test(cookie.name)) return undefined;
  const found = "COOKIE_NAME: __Secure- keeps no sibling domain from setting the cookie";
  return warning(found, "only __Host- with COOKIE_PATH=/ does");
}

/**
 * Finds an access cookie that a page of a sibling domain can set. A server that renders pages would show its visitors the session of
 * somebody else, where no refresh token beside it belongs to another one. Loopback addresses have no sibling domains.
 */
function plantableAccessCookie(config: Config) {
  const { accessName, secure } = config.cookie;
  const own = ownUrl(config);
  if (accessName === undefined || !secure || isHostOnly(accessName)) return undefined;
  if (own !== undefined && (isTrustworthy(own.hostname) || isAddress(own.hostname))) return undefined;
  return warning(
    `ACCESS_COOKIE: a page of a sibling domain can set ${accessName}, and show a visitor the session of somebody else`,
    `name it __Host-${plainName(accessName)}, which allows no COOKIE_DOMAIN; in the server kit set accessCookie`,
  );
}

/** Browsers register a device key at this path, and renew the device cookie at a path below it. */
const DEVICE_PATH = "/v1/auth/device";

/** Finds a path of the cookie that does not match the routes of device binding (RFC 6265bis section 5.1.4). */
function absentDeviceCookies({ deviceBinding, cookie: { path = "/" } }: Config) {
  const directory = path.endsWith("/") ? path : `${path}/`;
  if (!deviceBinding || `${DEVICE_PATH}/`.startsWith(directory)) return undefined;
  const found = `COOKIE_PATH: browsers do not send the cookie to ${DEVICE_PATH}, so that none binds a session by itself`;
  return warning(found, `set it to a path above ${DEVICE_PATH}`);
}
