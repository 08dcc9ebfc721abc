/** Warns of settings that are valid but probably not intended. A warning names the variable and never contains a secret. */
import { COMMAND_VARIABLES } from "./command-line.ts";
import { type Config, ConfigError, configVariables, readConfig } from "./config.ts";
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
 * Warns of the prefix `__Secure-`, which does not protect the cookie: measurements show that Chromium and Firefox let a page of a sibling
 * domain set such a cookie for the parent domain.
 */
function uselessPrefix({ cookie }: Config): string[] {
  if (!/^__Secure-/i.test(cookie.name)) return [];
  return [
    "COOKIE_NAME: __Secure- keeps no sibling domain from setting the cookie, only __Host- with COOKIE_PATH=/ does",
  ];
}

/** In ms. Measurements show that Chromium renews a device cookie before each request if its lifetime is shorter. */
const MIN_DEVICE_COOKIE_MS = 100_000;

function shortDeviceLife({ deviceBinding, deviceSessionTtlMs }: Config): string[] {
  if (!deviceBinding || deviceSessionTtlMs > MIN_DEVICE_COOKIE_MS) return [];
  return ["DEVICE_SESSION_TTL is 100s or less: browsers renew the device cookie with every refresh"];
}

/** Browsers register a device key at this path, and renew the device cookie at a path below it. */
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

function misspeltVariables(env: Environment): string[] {
  const known = configVariables();
  const unset = [...known.keys()].filter((name) => !env[name]);
  return Object.keys(env).flatMap((name) => {
    if (known.has(name) || FOREIGN.has(name) || !env[name]) return [];
    // ADMIN_TOKEN is a variable of the commands. It may be a misspelt ADMIN_TOKENS, but not beside ADMIN_TOKENS_FILE: the service then has
    // its tokens from that file.
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

/** Finds the variable that a misspelt name was probably meant to be. */

/** Counts the edits between two texts: insertions, deletions, replacements, and swaps of neighbours (optimal string alignment). */
export function distance(a: string, b: string): number {
  const rows = [Array.from({ length: b.length + 1 }, (_, index) => index)];
  const at = (row: number, column: number) => rows[row]?.[column] ?? Number.POSITIVE_INFINITY;
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    rows.push(row);
    for (let j = 1; j <= b.length; j++) {
      const replaced = at(i - 1, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1);
      const swaps = a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      const swapped = swaps ? at(i - 2, j - 2) + 1 : Number.POSITIVE_INFINITY;
      row.push(Math.min(replaced, at(i - 1, j) + 1, (row[j - 1] ?? 0) + 1, swapped));
    }
  }
  return at(a.length, b.length);
}

/** Returns the known name that is at most one edit away, or at most two edits for a long name; undefined if there is none. */
function mostLike(name: string, known: Iterable<string>): string | undefined {
  const mostEdits = name.length < 8 ? 1 : 2;
  let best: string | undefined;
  let fewest = mostEdits + 1;
  for (const candidate of known) {
    if (Math.abs(candidate.length - name.length) > mostEdits) continue;
    const edits = distance(name, candidate);
    if (edits < fewest) [best, fewest] = [candidate, edits];
  }
  return best;
}
