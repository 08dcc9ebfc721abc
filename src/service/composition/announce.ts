import { join, relative, resolve } from "node:path";
import { hasOwnAdminToken } from "../config/admin.ts";
import type { Config } from "../config/config.ts";
import { DATA_FILES } from "../config/data-dir.ts";
import { lineOf, type RingKeyFacts, ringFindings } from "../config/findings.ts";
import { isLoopback } from "../config/loopback.ts";
import type { Logger } from "../observability/logger.ts";

/** The shortest reuse interval without a warning, in ms: four times the 500 ms for which a refresh may always wait in this process. */
const MIN_REUSE_INTERVAL_MS = 2_000;
/**
 * An attacker that keeps refreshing with a stolen token is detected if the victim's refreshes are at least 7 reuse intervals apart
 * (docs/why/rotation.md). Tokens live up to a fifth shorter than configured, so a configured life of 9 reuse intervals suffices.
 */
const MIN_TTL_IN_REUSE_INTERVALS = 9;

type Ready = {
  readonly publicUrl: string;
  readonly adminUrl: string;
  readonly store: "embedded" | "redis";
  readonly docsKey: string | undefined;
};

/** Writes one line of JSON. If the service has the embedded store and made its admin token, a text follows that says how to try it. */
export function reportReady(out: (text: string) => void, config: Config, ready: Ready): void {
  const { publicUrl, adminUrl, store, docsKey } = ready;
  out(`${JSON.stringify({ event: "ready", public: publicUrl, admin: adminUrl, store })}\n`);
  if (store !== "embedded" || !hasOwnAdminToken(config)) return;
  const tokenFile = shortest(join(config.dataDir, DATA_FILES.adminToken));
  out(quickstart({ publicUrl, adminUrl, tokenFile, docsKey, console: config.console === "on" }));
}

function shortest(path: string): string {
  const near = relative(process.cwd(), path);
  return near.startsWith("..") ? resolve(path) : near;
}

/** @param keys those of the key ring */
export function reportSettings(config: Config, issuer: string, keys: readonly RingKeyFacts[], log: Logger): void {
  for (const finding of ringFindings(config, keys)) log.warn({ event: "config_warning" }, lineOf(finding));
  if (config.redis !== undefined && config.issuer === undefined) {
    log.warn(
      { event: "issuer_default", issuer },
      "ISSUER is not set: instances on other ports will not accept each other's access tokens",
    );
  }
  if (config.reuseIntervalMs > 0 && config.reuseIntervalMs < MIN_REUSE_INTERVAL_MS) {
    log.warn(
      { event: "reuse_interval_short" },
      "REUSE_INTERVAL is less than 2s: a stall of the service or the store may log out a browser (docs/why/rotation.md)",
    );
  }
  if (config.accessTokenTtlMs < MIN_TTL_IN_REUSE_INTERVALS * config.reuseIntervalMs) {
    log.warn(
      { event: "token_life_short" },
      "ACCESS_TOKEN_TTL is less than 9 REUSE_INTERVAL: an attacker that keeps polling may stay undetected (docs/why/rotation.md)",
    );
  }
}

/** Returns whether the service was started only to try it out: on the embedded store, on loopback, and without settings of a deployment. */
export function mayOfferSignIn(config: Config): boolean {
  const { redis, docs, host, tlsCertFile, trustProxy, issuer, audiences, allowedOrigins, cookie } = config;
  const isDeployed =
    redis !== undefined ||
    !hasOwnAdminToken(config) ||
    tlsCertFile !== undefined ||
    trustProxy !== 0 ||
    issuer !== undefined ||
    audiences !== undefined ||
    allowedOrigins.length > 0 ||
    cookie.domain !== undefined;
  return docs && !isDeployed && isLoopback(host);
}

/** Quotes an argument for a POSIX shell. */
function shellWord(text: string): string {
  return /^[\w./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** Replaces the wildcard address in a URL by the loopback address, because clients cannot connect to a wildcard address. */
function near(url: string): string {
  return url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:");
}

type Quickstart = {
  readonly publicUrl: string;
  readonly adminUrl: string;
  readonly tokenFile: string;
  /** The key for signing in on the reference page. */
  readonly docsKey: string | undefined;
  readonly console: boolean;
};

/** Returns what to do first with a service that was just started: at most five lines. */
function quickstart({ publicUrl, adminUrl, tokenFile, docsKey, console }: Quickstart): string {
  const admin = near(adminUrl);
  const curl = publicUrl.startsWith("https:") ? "curl -sk" : "curl -s";
  return `
Try it, in another terminal, in this directory: create a session
  ${curl} ${admin}/auth.admin.v1.SessionAdminService/CreateSession -H "Authorization: Bearer $(cat ${shellWord(tokenFile)})" -H 'Content-Type: application/json' -d '{"subject":"alice"}'
The API, to read and to try: ${near(publicUrl)}/docs${docsKey === undefined ? "" : `#key=${docsKey}`}
${
  console
    ? `Users and their sessions:    ${admin}/console (sign in with the token in ${shellWord(tokenFile)})
`
    : ""
}`;
}
