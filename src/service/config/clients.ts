/** The settings of clients: which browser requests are accepted, cookies, device binding (DBSC), and the OAuth endpoints. */
import { type CookieSettings, cookieFaults, cookieScope } from "./cookie.ts";
import { originPattern } from "./origin-pattern.ts";
import type { AddFault, Read } from "./reader.ts";
import {
  boolean,
  DAY_MS,
  date,
  duration,
  invalid,
  list,
  oneOf,
  type Parsed,
  plainUrl,
  SECOND_MS,
  text,
  valid,
} from "./values.ts";

export function readBrowsers(read: Read, addFault: AddFault) {
  const cookie: CookieSettings = Object.freeze({
    name: read("COOKIE_NAME", text(64), "refresh_token"),
    domain: read("COOKIE_DOMAIN", text(253), undefined),
    path: read("COOKIE_PATH", text(1024), undefined),
    sameSite: read("COOKIE_SAMESITE", oneOf("Strict", "Lax", "None"), "Lax" as const),
    secure: read("COOKIE_SECURE", boolean, true),
    partitioned: read("COOKIE_PARTITIONED", oneOf("off", "on"), "off" as const) === "on",
    migrateUntilMs: read("COOKIE_MIGRATE_UNTIL", date, undefined),
    previousScopes: read("COOKIE_PREVIOUS_SCOPES", list(cookieScope), []),
    hintName: read("SESSION_HINT_COOKIE", text(64), undefined),
    accessName: read("ACCESS_COOKIE", text(64), undefined),
  });
  for (const line of cookieFaults(cookie)) addFault(line);
  return {
    allowedOrigins: read("ALLOWED_ORIGINS", list(originPattern), []),
    allowSameSite: read("ALLOW_SAME_SITE", boolean, true),
    cookie,
  };
}

type Tls = { readonly tlsCertFile: string | undefined; readonly trustProxy: number | readonly string[] };

export function readDeviceBinding(read: Read, addFault: AddFault, cookie: CookieSettings, tls: Tls) {
  const device = {
    deviceBinding: read("DEVICE_BINDING", oneOf("off", "on"), "off" as const) === "on",
    deviceSessionTtlMs: read("DEVICE_SESSION_TTL", duration(SECOND_MS, DAY_MS), 300 * SECOND_MS),
  };
  if (!device.deviceBinding) return device;
  if (tls.tlsCertFile === undefined && tls.trustProxy === 0) {
    addFault("DEVICE_BINDING=on needs https: TLS_CERT_FILE, or TRUST_PROXY for a proxy in front that speaks it");
  }
  if (!cookie.secure) addFault("DEVICE_BINDING=on needs COOKIE_SECURE=true: browsers bind no other cookies");
  return device;
}

export function readOAuth(read: Read) {
  return {
    oauthEndpoints: read("OAUTH_ENDPOINTS", oneOf("on", "off"), "on" as const) === "on",
    dpopNonces: read("DPOP_NONCES", oneOf("on", "off"), "off" as const) === "on",
  };
}

/** How many names are looked for in each request without a refresh token. */
const MAX_NAMES = 16;

function cookieName(text: string): Parsed<string> {
  return /^[!#$%&'*+.^_`|~\w-]{1,64}$/.test(text) ? valid(text) : invalid("has an item that is not a cookie's name");
}

export function readMigration(read: Read, addFault: AddFault, { name, hintName, accessName }: CookieSettings) {
  const migration = {
    /** The cookies of sessions of another system, in the order in which they are looked for. */
    migrateCookies: read("MIGRATE_COOKIES", list(cookieName), [] as readonly string[]),
    /** The URL at which the application says whose session such a cookie names. */
    migrateUrl: read("MIGRATE_URL", plainUrl, undefined),
  };
  const { migrateCookies } = migration;
  if (migrateCookies.length > MAX_NAMES) addFault(`MIGRATE_COOKIES has more than ${MAX_NAMES} names`);
  const own = { COOKIE_NAME: name, SESSION_HINT_COOKIE: hintName, ACCESS_COOKIE: accessName };
  for (const [variable, cookie] of Object.entries(own)) {
    if (cookie === undefined) continue;
    const names = [cookie, cookie.replace(/^__(?:Host|Secure)-/, "")];
    if (names.some((each) => migrateCookies.includes(each))) addFault(`MIGRATE_COOKIES has the name in ${variable}`);
  }
  return migration;
}
