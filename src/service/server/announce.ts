import { join, relative, resolve } from "node:path";
import { hasOwnAdminToken } from "../config/admin.ts";
import type { Config } from "../config/config.ts";
import type { Logger } from "../observability/logger.ts";
import { ADMIN_TOKEN_FILE } from "../tokens/own-admin-token.ts";
import { quickstart } from "./quickstart.ts";

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
  const tokenFile = shortest(join(config.dataDir, ADMIN_TOKEN_FILE));
  out(quickstart({ publicUrl, adminUrl, tokenFile, docsKey, console: config.console === "on" }));
}

function shortest(path: string): string {
  const near = relative(process.cwd(), path);
  return near.startsWith("..") ? resolve(path) : near;
}

export function reportSettings(config: Config, issuer: string, log: Logger): void {
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
