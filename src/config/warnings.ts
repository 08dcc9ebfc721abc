/**
 * Warns of settings that are valid but probably not intended. Each warning is one line with the variable's name and never contains a
 * secret.
 */
import { COMMAND_VARIABLES } from "./command-line.ts";
import { type Config, ConfigError, configVariables, readConfig } from "./config.ts";
import { mostLike } from "./likeness.ts";
import { isLoopback } from "./loopback.ts";
import type { Environment } from "./reader.ts";

/** Reads the configuration. Warnings are returned also beside faults, because a misspelt name may be the cause of a fault. */
export function examineConfig(env: Environment) {
  const setCount = [...configVariables().keys()].filter((name) => env[name]).length;
  try {
    const config = readConfig(env);
    return { config, faults: [], warnings: configWarnings(env, config), setCount };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return { config: undefined, faults: error.faults, warnings: configWarnings(env), setCount };
  }
}

/** @param config undefined if the configuration has faults: then only the names of variables are examined */
export function configWarnings(env: Environment, config?: Config): string[] {
  if (config === undefined) return misspeltVariables(env);
  return [
    ...misspeltVariables(env),
    ...uselessOrigins(config),
    ...shortDeviceLife(config),
    ...absentDeviceCookies(config),
    ...uselessPrefix(config),
  ];
}

/**
 * Warns of a `__Secure-` cookie: a page of a sibling domain can set such a cookie for the parent domain, as measured in Chromium and
 * Firefox.
 */
function uselessPrefix({ cookie }: Config): string[] {
  if (!/^__Secure-/i.test(cookie.name)) return [];
  return [
    "COOKIE_NAME: __Secure- keeps no sibling domain from setting the cookie, only __Host- with COOKIE_PATH=/ does",
  ];
}

/**
 * The shortest lifetime of a device cookie that does not cause a warning, in ms. Measurements show that Chromium renews a cookie with a
 * shorter lifetime before each request.
 */
const MIN_DEVICE_COOKIE_MS = 100_000;

function shortDeviceLife({ deviceBinding, deviceSessionTtlMs }: Config): string[] {
  if (!deviceBinding || deviceSessionTtlMs > MIN_DEVICE_COOKIE_MS) return [];
  return ["DEVICE_SESSION_TTL is 100s or less: browsers renew the device cookie with every refresh"];
}

/** The path at which browsers register a device key. The renewal is at a path below it. */
const DEVICE_PATH = "/v1/auth/device";

/** Warns of a cookie's path that does not match the routes of device binding (RFC 6265bis section 5.1.4). */
function absentDeviceCookies({ deviceBinding, cookie: { path = "/" } }: Config): string[] {
  const directory = path.endsWith("/") ? path : `${path}/`;
  if (!deviceBinding || `${DEVICE_PATH}/`.startsWith(directory)) return [];
  return [`COOKIE_PATH: browsers do not send the cookie to ${DEVICE_PATH}, so that none binds a session by itself`];
}

/** Variables of OpenSSL whose names look like those of variables of this service. */
const FOREIGN: ReadonlySet<string> = new Set(["SSL_CERT_FILE", "SSL_CERT_DIR"]);

const COMMANDS: ReadonlySet<string> = new Set(COMMAND_VARIABLES);

/** Warns of unknown variables whose names are similar to that of a variable which is not set. */
function misspeltVariables(env: Environment): string[] {
  const known = configVariables();
  const unset = [...known.keys()].filter((name) => !env[name]);
  return Object.keys(env).flatMap((name) => {
    if (known.has(name) || FOREIGN.has(name) || !env[name]) return [];
    // The commands read ADMIN_TOKEN. If ADMIN_TOKENS_FILE is set, the service needs no ADMIN_TOKENS, so ADMIN_TOKEN is not a misspelt name.
    if (name === "ADMIN_TOKEN" && env.ADMIN_TOKENS_FILE) return [];
    const meant = mostLike(name.toUpperCase(), unset);
    if (meant === undefined) return [];
    const what = COMMANDS.has(name)
      ? "a variable of the commands, not of the service"
      : "not a variable of this service";
    return [`${name} is ${what}: is ${meant} meant?`];
  });
}

/** Warns of allowed origins whose pages never send the cookie, because they are on another site. */
function uselessOrigins(config: Config): string[] {
  const own = ownUrl(config);
  if (config.cookie.sameSite === "None" || own === undefined) return [];
  return config.allowedOrigins.flatMap((origin) => {
    const url = new URL(origin);
    if (url.protocol === own.protocol && maybeSameSite(url.hostname, own.hostname)) return [];
    const loopbacks = isLoopback(url.hostname) && isLoopback(own.hostname) && url.hostname !== own.hostname;
    const remedy = loopbacks
      ? `browsers take ${url.hostname} and ${own.hostname} for two sites: use one of them in both`
      : "its pages send the cookie only with COOKIE_SAMESITE=None";
    return [`ALLOWED_ORIGINS: ${origin} can never work, being another site than ${own.origin}: ${remedy}`];
  });
}

/** Returns the origin at which browsers reach the service, if the configuration shows it. */
function ownUrl(config: Config): URL | undefined {
  if (config.issuer !== undefined) return new URL(config.issuer);
  if (config.trustProxy > 0 || !isLoopback(config.host)) return undefined;
  const host = config.host.includes(":") ? `[${config.host}]` : config.host;
  return new URL(`${config.tlsCertFile === undefined ? "http" : "https"}://${host}`);
}

/** Returns false only if two hosts are certainly on two sites: a registrable domain has at least the last two labels. */
function maybeSameSite(a: string, b: string): boolean {
  if (a === b) return true;
  if (isAddress(a) || isAddress(b)) return false;
  const lastTwo = (host: string) => host.split(".").slice(-2).join(".");
  return lastTwo(a) === lastTwo(b);
}

const isAddress = (host: string) => host.startsWith("[") || /^[\d.]+$/.test(host);
