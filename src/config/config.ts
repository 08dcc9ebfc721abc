/**
 * The only reader of the environment. Every fault is found in one pass; what is returned is frozen.
 * README.md holds the same table, and a test compares the two.
 */
import { accessSync, constants } from "node:fs";
import { join } from "node:path";
import { type CookieSettings, cookieFaults } from "./cookie.ts";
import { parseRedisUrl, type RedisTarget } from "./redis-url.ts";
import {
  adminToken,
  boolean,
  duration,
  Fault,
  host,
  integer,
  issuer,
  list,
  oneOf,
  origin,
  type Parse,
  text,
} from "./values.ts";

export type Config = ReturnType<typeof readVariables>;

/** All faults of a configuration, one line each: the variable's name and what is wrong; never its value. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
  readonly faults: readonly string[];
  constructor(faults: readonly string[]) {
    super(faults.join("\n"));
    this.faults = faults;
  }
}

const SECOND = 1000;
const DAY = 86_400 * SECOND;

function redisTarget(value: string): RedisTarget | Fault {
  const target = parseRedisUrl(value);
  return "fault" in target ? new Fault(target.fault) : target;
}

function readableFile(path: string): string | Fault {
  try {
    accessSync(path, constants.R_OK);
    return path;
  } catch {
    return new Fault("names a file that cannot be read");
  }
}

type Reader = <T, D>(name: string, parse: Parse<T>, byDefault: D) => T | D;

function readVariables(read: Reader, fault: (line: string) => void) {
  const dataDir = read("DATA_DIR", text(4096), "./data");
  const redis = read("REDIS_URL", redisTarget, undefined);
  const config = {
    host: read("HOST", host, "127.0.0.1"),
    port: read("PORT", integer(0, 65535), 8080),
    adminHost: read("ADMIN_HOST", host, "127.0.0.1"),
    adminPort: read("ADMIN_PORT", integer(0, 65535), 8081),
    redis,
    redisWaitReplicas: read("REDIS_WAIT_REPLICAS", integer(0, 16), 0),
    redisCommandTimeout: read("REDIS_COMMAND_TIMEOUT", duration(10, 10 * SECOND), 500),
    dataDir,
    adminTokens: read("ADMIN_TOKENS", list(adminToken), undefined),
    keysFile: read("KEYS_FILE", text(4096), join(dataDir, "keys.json")),
    signingAlgorithm: read("SIGNING_ALGORITHM", oneOf("ES256", "EdDSA"), "ES256" as const),
    jwksMaxAge: read("JWKS_MAX_AGE", duration(SECOND, DAY), 300 * SECOND),
    issuer: read("ISSUER", issuer, undefined),
    audience: read("AUDIENCE", text(255), undefined),
    accessTokenTtl: read("ACCESS_TOKEN_TTL", duration(SECOND, DAY), 300 * SECOND),
    sessionIdleTtl: read("SESSION_IDLE_TTL", duration(SECOND, 3660 * DAY), 14 * DAY),
    sessionAbsoluteTtl: read("SESSION_ABSOLUTE_TTL", duration(SECOND, 3660 * DAY), 90 * DAY),
    reuseInterval: read("REUSE_INTERVAL", duration(0, 300 * SECOND), 10 * SECOND),
    maxSessionsPerSubject: read("MAX_SESSIONS_PER_SUBJECT", integer(1, 10_000), 100),
    allowedOrigins: read("ALLOWED_ORIGINS", list(origin), []),
    allowSameSite: read("ALLOW_SAME_SITE", boolean, true),
    cookie: {
      name: read("COOKIE_NAME", text(64), "refresh_token"),
      domain: read("COOKIE_DOMAIN", text(253), undefined),
      path: read("COOKIE_PATH", text(1024), undefined),
      sameSite: read("COOKIE_SAMESITE", oneOf("Strict", "Lax", "None"), "Lax" as const),
      secure: read("COOKIE_SECURE", boolean, true),
    } satisfies CookieSettings,
    trustProxy: read("TRUST_PROXY", integer(0, 16), 0),
    tlsCertFile: read("TLS_CERT_FILE", readableFile, undefined),
    tlsKeyFile: read("TLS_KEY_FILE", readableFile, undefined),
    docs: read("DOCS", boolean, redis === undefined),
    maxBodyBytes: read("MAX_BODY_BYTES", integer(1024, 16 * 1024 * 1024), 64 * 1024),
    shutdownTimeout: read("SHUTDOWN_TIMEOUT", duration(0, 600 * SECOND), 10 * SECOND),
    logLevel: read("LOG_LEVEL", oneOf("trace", "debug", "info", "warn", "error", "fatal", "silent"), "info" as const),
  };
  for (const line of cookieFaults(config.cookie)) fault(line);
  if ((config.tlsCertFile === undefined) !== (config.tlsKeyFile === undefined)) {
    fault("TLS_CERT_FILE and TLS_KEY_FILE must be set together");
  }
  if (config.sessionIdleTtl > config.sessionAbsoluteTtl) {
    fault("SESSION_IDLE_TTL must not exceed SESSION_ABSOLUTE_TTL");
  }
  if (config.reuseInterval * 3 > config.sessionIdleTtl) {
    fault("REUSE_INTERVAL must be at most a third of SESSION_IDLE_TTL");
  }
  if (config.redis === undefined && config.redisWaitReplicas > 0) {
    fault("REDIS_WAIT_REPLICAS needs REDIS_URL");
  }
  if (config.port !== 0 && config.port === config.adminPort && config.host === config.adminHost) {
    fault("ADMIN_PORT must differ from PORT on the same host");
  }
  return config;
}

/** Reads the configuration, or throws a ConfigError with every fault. A variable set to nothing counts as unset. */
export function readConfig(env: Readonly<Record<string, string | undefined>>): Config {
  const faults: string[] = [];
  const read: Reader = (name, parse, byDefault) => {
    const value = env[name];
    if (value === undefined || value === "") return byDefault;
    const parsed = parse(value);
    if (!(parsed instanceof Fault)) return parsed;
    faults.push(`${name} ${parsed.text}`);
    return byDefault;
  };
  const config = readVariables(read, (line) => faults.push(line));
  if (faults.length > 0) throw new ConfigError(faults);
  Object.freeze(config.cookie);
  return Object.freeze(config);
}
