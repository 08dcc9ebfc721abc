import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { ConfigError, configVariables, readConfig } from "../../../src/service/config/config.ts";
import { selfSigned } from "../../support/certificate.ts";
import { scratch } from "../../support/service.ts";

const CA_FILE = join(scratch(), "ca.pem");
writeFileSync(CA_FILE, selfSigned().cert);
const PASSWORD_FILE = join(scratch(), "password");
writeFileSync(PASSWORD_FILE, "hunter2\n");

function faultsOf(env: Record<string, string>): readonly string[] {
  try {
    readConfig(env);
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.faults;
    throw error;
  }
}

/** For each variable that has invalid values, one of these values. */
const BAD: Record<string, string> = {
  HOST: "not a host",
  PORT: "65536",
  ADMIN_HOST: "a/b",
  ADMIN_PORT: "-1",
  ADMIN_ALLOWED_HOSTS: "https://admin.example.com",
  REDIS_URL: "http://127.0.0.1",
  REDIS_URL_FILE: "/nonexistent/redis-url",
  REDIS_KEY_PREFIX: "a{b}",
  REDIS_USERNAME: "u".repeat(300),
  REDIS_PASSWORD_FILE: "/nonexistent/password",
  REDIS_SENTINEL_USERNAME: "u".repeat(300),
  REDIS_SENTINEL_PASSWORD: "p".repeat(2000),
  REDIS_SENTINEL_PASSWORD_FILE: "/nonexistent/password",
  REDIS_TLS_CA_FILE: "/nonexistent/ca.pem",
  REDIS_TLS_CERT_FILE: "/nonexistent/cert.pem",
  REDIS_TLS_KEY_FILE: "/nonexistent/key.pem",
  REDIS_WAIT_REPLICAS: "many",
  WORKERS: "all",
  REDIS_COMMAND_TIMEOUT: "1ms",
  DATA_DIR: "d".repeat(5000),
  ADMIN_TOKENS: "short",
  ADMIN_TOKENS_FILE: "/nonexistent/admins.json",
  ADMIN_TLS_CLIENT_CA_FILE: "/nonexistent/ca.pem",
  METRICS_AUTH: "yes",
  KEYS_FILE: "k".repeat(5000),
  SIGNING_ALGORITHM: "none",
  JWKS_MAX_AGE: "0",
  ISSUER: "ftp://issuer",
  AUDIENCE: "a".repeat(300),
  ACCESS_TOKEN_TTL: "5 minutes",
  ACTOR_SESSION_MAX: "2d",
  SESSION_IDLE_TTL: "soon",
  SESSION_ABSOLUTE_TTL: "1e9",
  REUSE_INTERVAL: "10m",
  CONSOLE: "perhaps",
  LAST_SEEN: "some",
  MAX_SESSIONS_PER_SUBJECT: "0",
  SESSION_POLICIES_FILE: "/nonexistent/policies.json",
  EVENT_RETENTION: "401d",
  ALLOWED_ORIGINS: "*",
  ALLOW_SAME_SITE: "yes",
  COOKIE_NAME: "a b",
  COOKIE_DOMAIN: "exa mple",
  COOKIE_PARTITIONED: "maybe",
  COOKIE_PATH: "v1",
  COOKIE_PREVIOUS_SCOPES: "/v1/auth,example.com",
  COOKIE_SAMESITE: "Sometimes",
  COOKIE_SECURE: "1",
  COOKIE_MIGRATE_UNTIL: "2027-13-01",
  SESSION_HINT_COOKIE: "a;b",
  ACCESS_COOKIE: "a=b",
  DEVICE_BINDING: "maybe",
  MIGRATE_COOKIES: "a b",
  MIGRATE_URL: "app.internal",
  OIDC_ISSUER: "http://login.example.com",
  OIDC_CLIENT_ID: "a\nb",
  OIDC_CLIENT_SECRET: "a\nb",
  OIDC_CLIENT_SECRET_FILE: "/nonexistent/secret",
  SIGN_IN_PROVIDERS_FILE: "/nonexistent/providers.json",
  CONSOLE_PROVIDER_FILE: "/nonexistent/console.json",
  SIGN_IN_ORIGIN: "https://app.example.com/",
  SIGN_IN_STYLE_FILE: "/nonexistent/style.css",
  OAUTH_ENDPOINTS: "perhaps",
  DPOP_NONCES: "perhaps",
  SIGNALS: "perhaps",
  SIGNALS_RETENTION: "1s",
  SIGNALS_VERIFICATION_INTERVAL: "2h",
  SIGNALS_ALLOW_PRIVATE: "perhaps",
  SIGNALS_URL: "signals.example",
  SIGNALS_RSA_KEY_FILE: "/nonexistent/signals.pem",
  DEVICE_SESSION_TTL: "2d",
  TRUST_PROXY: "all",
  TLS_CERT_FILE: "/nonexistent/cert.pem",
  TLS_KEY_FILE: "/nonexistent/key.pem",
  HSTS_MAX_AGE: "-1",
  DOCS: "on",
  REFLECTION: "on",
  MAX_BODY_BYTES: "1",
  MAX_CONNECTIONS: "15",
  MAX_CONNECTIONS_PER_ADDRESS: "0",
  REQUEST_TIMEOUT: "999ms",
  DRAIN_DELAY: "601s",
  SHUTDOWN_TIMEOUT: "x",
  RATE_LIMIT_REFRESH: "fast",
  RATE_LIMIT_FAILURES: "0/30s",
  RATE_LIMIT_CREATE: "100/1ms",
  RATE_LIMIT_UPDATE: "1",
  OVERLOAD_MAX_WAITING: "-1",
  OVERLOAD_MAX_LOOP_DELAY: "1h",
  LOG_LEVEL: "loud",
  OTEL_SDK_DISABLED: "1",
  OTEL_EXPORTER_OTLP_ENDPOINT: "collector:4318",
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "grpc://collector",
  OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: "/v1/metrics",
  OTEL_TRACES_EXPORTER: "zipkin",
  OTEL_METRICS_EXPORTER: "console",
  OTEL_EXPORTER_OTLP_PROTOCOL: "grpc",
  OTEL_EXPORTER_OTLP_HEADERS_FILE: "/nonexistent/headers",
  OTEL_SERVICE_NAME: "s".repeat(300),
  OTEL_TRACES_SAMPLER: "sometimes",
  OTEL_TRACES_SAMPLER_ARG: "2",
  OTEL_METRIC_EXPORT_INTERVAL: "1",
  TRACE_LIMIT: "all",
};

test("every fault is named at once, one line each, and no line repeats a value", () => {
  const faults = faultsOf(BAD);
  expect(faults.map((line) => line.split(" ")[0]).sort()).toEqual(Object.keys(BAD).sort());
  for (const value of ["http://127", "/nonexistent", "loud"]) expect(faults.join("\n")).not.toContain(value);
});

test("the bad values cover every variable that the reader knows", () => {
  expect(Object.keys(BAD).sort()).toEqual([...configVariables().keys()].sort());
});

test.each(["STATUS_LIST", "STATUS_LIST_TTL"])(
  "%s, which an earlier version had, is refused with what replaces it",
  (name) => {
    expect(faultsOf({ [name]: "on" })).toEqual([
      expect.stringMatching(new RegExp(`^${name} was removed .*docs/tasks/verifier.md`)),
    ]);
    expect(faultsOf({ [name]: "" })).toEqual([]);
  },
);

test("without any variable the defaults of the contract hold", () => {
  const config = readConfig({});
  expect(config).toMatchObject({
    host: "127.0.0.1",
    port: 8080,
    adminPort: 8081,
    redis: undefined,
    accessTokenTtlMs: 300_000,
    sessionIdleTtlMs: 14 * 86_400_000,
    sessionAbsoluteTtlMs: 90 * 86_400_000,
    reuseIntervalMs: 10_000,
    keysFile: "data/keys.json",
    cookie: { name: "refresh_token", sameSite: "Lax", secure: true },
  });
  expect(Object.isFrozen(config) && Object.isFrozen(config.cookie)).toBe(true);
});

test.each([
  ["70s", 70_000],
  ["5m", 300_000],
  ["14d", 14 * 86_400_000],
  ["90", 90_000],
  ["60500ms", 60_500],
  ["2h", 7_200_000],
])("a duration of %s is %d ms", (text, ms) => {
  expect(readConfig({ SESSION_ABSOLUTE_TTL: text, SESSION_IDLE_TTL: "60s" }).sessionAbsoluteTtlMs).toBe(ms);
});

test("the reference page is on by default only with the embedded store", () => {
  expect(readConfig({}).docs).toBe(true);
  expect(readConfig({ REDIS_URL: "redis://127.0.0.1" }).docs).toBe(false);
  expect(readConfig({ REDIS_URL: "redis://127.0.0.1", DOCS: "true" }).docs).toBe(true);
});

test("an empty variable counts as unset", () => {
  expect(readConfig({ REDIS_URL: "", PORT: "" })).toEqual(readConfig({}));
});

test.each(["1.5s", "1.5", "-1s", "1e3", "5 m", "5m5s", " 5m", "5M"])("%j is no duration", (text) => {
  expect(faultsOf({ SESSION_ABSOLUTE_TTL: text })).toEqual([expect.stringMatching(/^SESSION_ABSOLUTE_TTL is not a/)]);
});

test.each([
  ["AUDIENCE", ","],
  ["AUDIENCE", "a,"],
  ["AUDIENCE", " "],
  ["ADMIN_ALLOWED_HOSTS", "a,,b"],
])("%s refuses the empty item of %j", (name, value) => {
  expect(faultsOf({ [name]: value })).toEqual([`${name} has an empty item`]);
});

test.each(["DATA_DIR", "KEYS_FILE", "OTEL_SERVICE_NAME", "COOKIE_NAME"])(
  "%s refuses white space around it, which nobody sees",
  (name) => {
    for (const value of [" ", " x", "x\u00a0"]) {
      expect(faultsOf({ [name]: value })).toContain(`${name} begins or ends with white space`);
    }
  },
);

test("a day that the calendar lacks is no date", () => {
  const until = (day: string) => faultsOf({ COOKIE_NAME: "__Host-a", COOKIE_MIGRATE_UNTIL: day });
  expect(until("2027-02-28T23:59:59+01:00")).toEqual([]);
  for (const day of ["2027-02-29", "2027-02-31T12:00:00Z"]) expect(until(day)).toHaveLength(1);
});

test("a directory is no file", () => {
  expect(faultsOf({ ADMIN_TOKENS_FILE: scratch() })).toEqual(["ADMIN_TOKENS_FILE names a directory, not a file"]);
});

test.each([
  ["127.0.0.1", "127.0.0.1", 1],
  ["0.0.0.0", "127.0.0.1", 1],
  ["127.0.0.1", "::", 1],
  ["localhost", "127.0.0.1", 1],
  ["::1", "0:0:0:0:0:0:0:1", 1],
  ["127.0.0.1", "::ffff:127.0.0.1", 1],
  ["::ffff:0.0.0.0", "127.0.0.1", 1],
  ["0:0:0:0:0:ffff:0:0", "127.0.0.1", 1],
  ["10.0.0.1", "127.0.0.1", 0],
  ["::1", "127.0.0.1", 0],
])("%s and %s have %i fault with the same port", (HOST, ADMIN_HOST, faults) => {
  const hosts = { HOST, ADMIN_HOST };
  expect(faultsOf({ ...hosts, PORT: "8080", ADMIN_PORT: "8080" })).toHaveLength(faults);
  expect(faultsOf({ ...hosts, PORT: "0", ADMIN_PORT: "0" })).toEqual([]);
});

test("a previous scope of the cookie is a path, with or without a domain", () => {
  expect(readConfig({ COOKIE_PREVIOUS_SCOPES: "/v1/auth, .example.com/" }).cookie.previousScopes).toEqual([
    { domain: undefined, path: "/v1/auth" },
    { domain: ".example.com", path: "/" },
  ]);
});

test.each(["", "example.com", "exa mple/", "/a;b", "example.com/ x"])("%j is no scope of a cookie", (text) => {
  expect(faultsOf({ COOKIE_PREVIOUS_SCOPES: `/,${text}` })).toEqual([
    expect.stringMatching(/^COOKIE_PREVIOUS_SCOPES /),
  ]);
});

test("a cookie with the __Host- prefix may say its path, which is / alone", () => {
  expect(readConfig({ COOKIE_NAME: "__Host-rt", COOKIE_PATH: "/" }).cookie.path).toBe("/");
});

describe("settings that browsers or the protocol cannot live with are refused", () => {
  test.each<[string, Record<string, string>]>([
    ["COOKIE_SAMESITE=None", { COOKIE_SAMESITE: "none", COOKIE_SECURE: "false" }],
    ["COOKIE_DOMAIN is co.uk, under which anybody may have a name", { COOKIE_DOMAIN: "co.uk" }],
    ["COOKIE_DOMAIN is .github.io, under which anybody", { COOKIE_DOMAIN: ".github.io" }],
    ["COOKIE_PREVIOUS_SCOPES has an item that is neither", { COOKIE_PREVIOUS_SCOPES: "com/v1/auth" }],
    ["COOKIE_PARTITIONED=on needs COOKIE_SAMESITE=None", { COOKIE_PARTITIONED: "on" }],
    ["ALLOWED_ORIGINS has a star below co.uk", { ALLOWED_ORIGINS: "https://app.example.com,https://*.co.uk" }],
    ["__Host- prefix allows no COOKIE_DOMAIN", { COOKIE_NAME: "__Host-rt", COOKIE_DOMAIN: "example.com" }],
    ["__Host- prefix allows no COOKIE_PATH", { COOKIE_NAME: "__Host-rt", COOKIE_PATH: "/v1" }],
    ["COOKIE_MIGRATE_UNTIL needs a COOKIE_NAME with", { COOKIE_MIGRATE_UNTIL: "2027-01-31" }],
    ["SESSION_HINT_COOKIE must differ", { SESSION_HINT_COOKIE: "refresh_token" }],
    ["ACCESS_COOKIE must differ from COOKIE_NAME", { ACCESS_COOKIE: "refresh_token" }],
    ["ACCESS_COOKIE must differ from SESSION_HINT_COOKIE", { ACCESS_COOKIE: "one", SESSION_HINT_COOKIE: "one" }],
    ["SESSION_HINT_COOKIE must differ", { COOKIE_NAME: "__Host-rt", SESSION_HINT_COOKIE: "rt" }],
    [
      "SESSION_HINT_COOKIE with the __Host- prefix allows no COOKIE_DOMAIN",
      { SESSION_HINT_COOKIE: "__Host-in", COOKIE_DOMAIN: "example.com" },
    ],
    ["prefix needs COOKIE_SECURE", { COOKIE_NAME: "__Secure-rt", COOKIE_SECURE: "false" }],
    ["TLS_CERT_FILE and TLS_KEY_FILE", { TLS_CERT_FILE: import.meta.filename }],
    ["MIGRATE_COOKIES has more than 16", { MIGRATE_COOKIES: Array.from({ length: 17 }, (_, k) => `a${k}`).join() }],
    ["MIGRATE_COOKIES has the name in COOKIE_NAME", { MIGRATE_COOKIES: "a,rt", COOKIE_NAME: "__Host-rt" }],
    ["MIGRATE_COOKIES has the name in ACCESS_COOKIE", { MIGRATE_COOKIES: "at", ACCESS_COOKIE: "__Host-at" }],
    ["MIGRATE_COOKIES has the name in SESSION_HINT_COOKIE", { MIGRATE_COOKIES: "in", SESSION_HINT_COOKIE: "in" }],
    ["SESSION_IDLE_TTL must not exceed", { SESSION_IDLE_TTL: "91d" }],
    ["a third of SESSION_IDLE_TTL", { SESSION_IDLE_TTL: "20s" }],
    ["REDIS_WAIT_REPLICAS needs REDIS_URL", { REDIS_WAIT_REPLICAS: "1" }],
    ["WORKERS needs REDIS_URL: processes on the embedded store would wait for each other's writes", { WORKERS: "2" }],
    ["REDIS_TLS_CA_FILE needs a REDIS_URL with rediss", { REDIS_URL: "redis://a", REDIS_TLS_CA_FILE: CA_FILE }],
    ["REDIS_TLS_CA_FILE needs a REDIS_URL with rediss", { REDIS_TLS_CA_FILE: CA_FILE }],
    [
      "REDIS_TLS_CA_FILE names a file that is no PEM certificate",
      { REDIS_URL: "rediss://a", REDIS_TLS_CA_FILE: import.meta.filename },
    ],
    [
      "REDIS_TLS_CA_FILE names a file that cannot be read (ENOENT)",
      { REDIS_URL: "rediss://a", REDIS_TLS_CA_FILE: "/nonexistent/ca" },
    ],
    ["ADMIN_TOKENS_FILE names a file that cannot be read (ENOENT)", { ADMIN_TOKENS_FILE: "/nonexistent/admins.json" }],
    ["REDIS_TLS_CERT_FILE and REDIS_TLS_KEY_FILE", { REDIS_URL: "rediss://a", REDIS_TLS_CERT_FILE: CA_FILE }],
    [
      "REDIS_TLS_KEY_FILE is not the key",
      { REDIS_URL: "rediss://a", REDIS_TLS_CERT_FILE: CA_FILE, REDIS_TLS_KEY_FILE: CA_FILE },
    ],
    ["REDIS_PASSWORD_FILE needs REDIS_URL", { REDIS_PASSWORD_FILE: PASSWORD_FILE }],
    ["REDIS_USERNAME needs REDIS_URL", { REDIS_USERNAME: "u" }],
    ["REDIS_USERNAME needs REDIS_PASSWORD_FILE", { REDIS_URL: "redis://a", REDIS_USERNAME: "u" }],
    ["REDIS_USERNAME and a user", { REDIS_URL: "redis://u:hunter2@a", REDIS_USERNAME: "v" }],
    ["a password in REDIS_URL exclude", { REDIS_URL: "redis://:hunter2@a", REDIS_PASSWORD_FILE: PASSWORD_FILE }],
    ["REDIS_PASSWORD_FILE names a file", { REDIS_URL: "redis://a", REDIS_PASSWORD_FILE: "/nonexistent/password" }],
    ["REDIS_SENTINEL_PASSWORD needs a REDIS_URL with", { REDIS_URL: "redis://a", REDIS_SENTINEL_PASSWORD: "hunter2" }],
    ["USERNAME needs REDIS_SENTINEL_PASSWORD", { REDIS_URL: "redis+sentinel://a/m", REDIS_SENTINEL_USERNAME: "u" }],
    ["ADMIN_PORT must differ", { PORT: "9000", ADMIN_PORT: "9000" }],
    ["REDIS_URL", { REDIS_URL: "redis://:hunter2@127.0.0.1:notaport" }],
  ])("%s", (text, env) => {
    const faults = faultsOf(env);
    expect(faults).toHaveLength(1);
    expect(faults[0]).toContain(text);
    expect(faults[0]).not.toContain("hunter2");
  });
});
