import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { distance } from "../../../src/platform/spelling/nearest.ts";
import { configVariables, readConfig } from "../../../src/service/config/config.ts";
import { configFindings } from "../../../src/service/config/findings.ts";

const SELF = import.meta.filename;

const warningsOf = (env: Record<string, string>) => configFindings(env, readConfig(env)).map(({ found }) => found);

describe("a misspelt variable", () => {
  test.each([
    ["PROT", "PORT"],
    ["ACCESS_TOKEN_TLL", "ACCESS_TOKEN_TTL"],
    ["port", "PORT"],
    ["COOKIE_SAME_SITE", "COOKIE_SAMESITE"],
    ["REDIS_URI", "REDIS_URL"],
    ["ALOWED_ORIGIN", "ALLOWED_ORIGINS"],
    ["ISSUR", "ISSUER"],
    ["ISSUER_FILE", "ISSUER"],
    ["SESSION_TIMEOUT", "SESSION_IDLE_TTL"],
    ["REDIS_HOST", "REDIS_URL"],
    ["TRUST_PROXIES", "TRUST_PROXY"],
    ["MAX_BODY_SIZE", "MAX_BODY_BYTES"],
    ["TLS_CERT", "TLS_CERT_FILE"],
  ])("%s is found to be like %s", (name, meant) => {
    expect(warningsOf({ [name]: "secret-value" })).toEqual([
      `${name} is not a variable of this service: is ${meant} meant?`,
    ]);
  });

  test("is not confused with a variable of the commands", () => {
    expect(warningsOf({ ADMIN_TOKEN: "secret-value" })).toEqual([
      "ADMIN_TOKEN is a variable of the commands, not of the service: is ADMIN_TOKENS meant?",
    ]);
    expect(warningsOf({ ADMIN_TOKEN: "secret-value", ADMIN_TOKENS_FILE: import.meta.filename })).toEqual([]);
  });

  test("is not reported where the right one is set, or it is empty", () => {
    expect(warningsOf({ PROT: "1", PORT: "8080" })).toEqual([]);
    expect(warningsOf({ PROT: "" })).toEqual([]);
  });

  test("is none of those that a process usually has", () => {
    const usual = ["PATH", "HOME", "PWD", "OLDPWD", "USER", "LANG", "TERM", "SHELL", "SHLVL", "HOSTNAME", "LOGNAME"];
    const more = ["NODE_ENV", "NODE_OPTIONS", "TZ", "TMPDIR", "INIT_CWD", "EDITOR", "COLOR", "KUBERNETES_PORT", "CI"];
    const foreign = [
      "SSL_CERT_FILE",
      "SSL_CERT_DIR",
      "OTEL_RESOURCE_ATTRIBUTES",
      "DATABASE_URL",
      "SERVICE_NAME",
      "LOG_FORMAT",
    ];
    const links = ["REDIS_SERVICE_HOST", "REDIS_SERVICE_PORT", "REDIS_PORT_6379_TCP_ADDR", "ADMIN_SERVICE_HOST"];
    const all = [...usual, ...more, ...foreign, ...links];
    expect(warningsOf(Object.fromEntries(all.map((name) => [name, "x"])))).toEqual([]);
    expect(warningsOf({ REDIS_HOST: "tcp://10.0.0.1:6379" })).toEqual([]);
    expect(configVariables().size).toBeGreaterThan(30);
  });
});

test.each([
  ["", "abc", 3],
  ["abc", "", 3],
  ["kitten", "sitting", 3],
  ["prot", "port", 1],
  ["ab", "ba", 1],
  ["same", "same", 0],
])("from %j to %j it takes %d edits", (a, b, edits) => {
  expect([distance(a, b), distance(b, a)]).toEqual([edits, edits]);
});

test("a limit changes no number of edits below it, and stops at no smaller one", () => {
  const text = fc.string({ unit: fc.constantFrom("A", "B", "_"), maxLength: 8 });
  fc.assert(
    fc.property(text, text, fc.integer({ min: 1, max: 5 }), (a, b, tooMany) => {
      const [whole, limited] = [distance(a, b), distance(a, b, tooMany)];
      if (whole < tooMany) expect(limited).toBe(whole);
      else expect(limited).toBeGreaterThanOrEqual(tooMany);
    }),
  );
});

test("a prefix of the cookie's name that protects it from no sibling domain is reported", () => {
  expect(warningsOf({ COOKIE_NAME: "__Secure-rt" })).toEqual([
    expect.stringMatching(/^COOKIE_NAME: __Secure- keeps no/),
  ]);
  expect(warningsOf({ COOKIE_NAME: "__Host-rt" })).toEqual([]);
});

test.each<[Record<string, string>, string]>([
  [{ TRACE_LIMIT: "5/1s" }, "TRACE_LIMIT has no effect without OTEL_TRACES_EXPORTER=otlp"],
  [
    {
      OTEL_METRICS_EXPORTER: "none",
      OTEL_EXPORTER_OTLP_ENDPOINT: "http://a",
      OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: "http://b",
    },
    "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT has no effect without OTEL_METRICS_EXPORTER=otlp",
  ],
  [
    { OTEL_METRICS_EXPORTER: "none", OTEL_EXPORTER_OTLP_ENDPOINT: "http://a", OTEL_METRIC_EXPORT_INTERVAL: "5000" },
    "OTEL_METRIC_EXPORT_INTERVAL has no effect without OTEL_METRICS_EXPORTER=otlp",
  ],
  [
    { OTEL_TRACES_EXPORTER: "none", OTEL_EXPORTER_OTLP_ENDPOINT: "http://a", TRACE_LIMIT: "5/1s" },
    "TRACE_LIMIT has no effect without OTEL_TRACES_EXPORTER=otlp",
  ],
  [
    { OTEL_TRACES_SAMPLER_ARG: "0.1", OTEL_EXPORTER_OTLP_ENDPOINT: "http://a" },
    "OTEL_TRACES_SAMPLER_ARG has no effect without OTEL_TRACES_SAMPLER=parentbased_traceidratio",
  ],
  [
    { MAX_CONNECTIONS: "100", MAX_CONNECTIONS_PER_ADDRESS: "101" },
    "MAX_CONNECTIONS_PER_ADDRESS has no effect above MAX_CONNECTIONS",
  ],
  [
    { OTEL_PROPAGATORS: "b3", OTEL_EXPORTER_OTLP_ENDPOINT: "http://a" },
    "OTEL_PROPAGATORS has no effect: traces go on by traceparent alone",
  ],
  [
    { OTEL_PROPAGATORS: "none", OTEL_EXPORTER_OTLP_ENDPOINT: "http://a" },
    "OTEL_PROPAGATORS has no effect: traces go on by traceparent alone",
  ],
  [
    { OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: "grpc", OTEL_EXPORTER_OTLP_ENDPOINT: "http://a" },
    "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL has no effect",
  ],
  [
    { OTEL_EXPORTER_OTLP_METRICS_PROTOCOL: "http/json", OTEL_EXPORTER_OTLP_ENDPOINT: "http://a" },
    "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL has no effect",
  ],
  [
    { OTEL_LOGS_EXPORTER: "otlp", OTEL_EXPORTER_OTLP_ENDPOINT: "http://a" },
    "OTEL_LOGS_EXPORTER has no effect: the log goes to standard error",
  ],
  [
    { COOKIE_NAME: "__Host-rt", COOKIE_MIGRATE_UNTIL: "2020-01-01" },
    "COOKIE_MIGRATE_UNTIL is over: the name without its prefix is not read",
  ],
])("%j has a setting without effect", (env, found) => {
  expect(warningsOf(env)).toEqual([found]);
});

test("a setting of telemetry that has its effect is no finding", () => {
  const on = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://a", TRACE_LIMIT: "5/1s", OTEL_METRIC_EXPORT_INTERVAL: "5000" };
  expect(warningsOf({ ...on, OTEL_TRACES_SAMPLER: "traceidratio", OTEL_TRACES_SAMPLER_ARG: "0.1" })).toEqual([]);
  expect(warningsOf({ OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: "http://b" })).toEqual([]);
  expect(warningsOf({ ...on, OTEL_SDK_DISABLED: "true" })).toEqual([]);
  const usual = { OTEL_PROPAGATORS: "tracecontext, baggage", OTEL_LOGS_EXPORTER: "none" };
  expect(warningsOf({ ...on, ...usual, OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: "http/protobuf" })).toEqual([]);
  expect(warningsOf({ OTEL_PROPAGATORS: "b3", OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: "grpc" })).toEqual([]);
});

test("a migration of the cookie's name that is not over is no finding", () => {
  expect(warningsOf({ COOKIE_NAME: "__Host-rt", COOKIE_MIGRATE_UNTIL: "2999-01-01" })).toEqual([]);
});

const PAGES = { ISSUER: "https://app.example.com", TRUST_PROXY: "1", COOKIE_PATH: "/" };

test.each<[string, Record<string, string>]>([
  ["ISSUER is https", { ISSUER: "https://auth.example.com" }],
  ["ISSUER is http://auth.example.com", { ISSUER: "http://auth.example.com" }],
  ["COOKIE_DOMAIN is", { ISSUER: "https://a.example.com", TRUST_PROXY: "1", COOKIE_DOMAIN: "example.org" }],
  ["ACCESS_COOKIE without COOKIE_PATH=/", { ACCESS_COOKIE: "at" }],
  ["ACCESS_COOKIE: a page of a sibling domain", { ...PAGES, ACCESS_COOKIE: "access_token" }],
  [
    "ACCESS_COOKIE: a page of a sibling domain",
    { ...PAGES, ACCESS_COOKIE: "__Secure-at", COOKIE_DOMAIN: "example.com" },
  ],
  ["ACCESS_COOKIE: a page of a sibling domain", { COOKIE_PATH: "/", ACCESS_COOKIE: "at", TRUST_PROXY: "1" }],
  ["SIGNALS_URL has no effect", { SIGNALS_URL: "https://signals.example.com" }],
  ["DEVICE_SESSION_TTL has no effect", { DEVICE_SESSION_TTL: "10m" }],
  ["REDIS_COMMAND_TIMEOUT has no effect", { REDIS_COMMAND_TIMEOUT: "1s" }],
  ["DPOP_NONCES has no effect", { OAUTH_ENDPOINTS: "off", DPOP_NONCES: "on" }],
  [
    "COOKIE_SAMESITE=Strict: a sign-in at a provider",
    { COOKIE_SAMESITE: "Strict", OIDC_ISSUER: "https://login.example.com", OIDC_CLIENT_ID: "app" },
  ],
  ["MIGRATE_URL has no effect without MIGRATE_COOKIES", { MIGRATE_URL: "http://app.internal/migrate" }],
  ["MIGRATE_COOKIES has no effect without MIGRATE_URL", { MIGRATE_COOKIES: "connect.sid" }],
  ["MIGRATE_URL: old cookies", { MIGRATE_COOKIES: "connect.sid", MIGRATE_URL: "http://app.example.com/migrate" }],
  ["MIGRATE_URL: old cookies", { MIGRATE_COOKIES: "connect.sid", MIGRATE_URL: "http://203.0.113.7/migrate" }],
  ["COOKIE_SAMESITE=None without", { COOKIE_SAMESITE: "None" }],
])("%s … is found", (beginning, env) => {
  expect(warningsOf(env)).toEqual([expect.stringContaining(beginning)]);
});

test.each<[string, Record<string, string>]>([
  ["a certificate", { ISSUER: "https://auth.example.com", TLS_CERT_FILE: SELF, TLS_KEY_FILE: SELF }],
  ["a host of this machine", { ISSUER: "http://app.localhost:8080" }],
  ["an access cookie beside a __Host- cookie", { COOKIE_NAME: "__Host-rt", ACCESS_COOKIE: "at" }],
  ["an access cookie that no other domain can set", { ...PAGES, ACCESS_COOKIE: "__Host-at" }],
  ["an access cookie on this machine", { COOKIE_PATH: "/", ACCESS_COOKIE: "at", ISSUER: "http://localhost:8080" }],
  ...[
    "http://127.0.0.1:3000",
    "http://app",
    "http://app.default.svc",
    "http://10.1.2.3",
    "https://app.example.com",
  ].map((url): [string, Record<string, string>] => [
    `a migration by ${url}`,
    { MIGRATE_COOKIES: "connect.sid", MIGRATE_URL: url },
  ]),
  ["signals that are switched off", { SIGNALS_ALLOW_PRIVATE: "off" }],
])("%s is no finding", (_, env) => {
  expect(warningsOf(env)).toEqual([]);
});

describe("an allowed origin", () => {
  const HTTPS = { ISSUER: "https://auth.example.com", TRUST_PROXY: "1" };
  test.each<[string, Record<string, string>]>([
    ["on another site", { ...HTTPS, ALLOWED_ORIGINS: "https://app.example.org" }],
    ["on the same host without TLS", { ...HTTPS, ALLOWED_ORIGINS: "http://app.example.com" }],
    ["at an address", { ...HTTPS, ALLOWED_ORIGINS: "https://192.0.2.1" }],
    ["at localhost beside 127.0.0.1", { ALLOWED_ORIGINS: "http://localhost:3000" }],
    ["at 127.0.0.1 beside localhost", { HOST: "localhost", ALLOWED_ORIGINS: "http://127.0.0.1:3000" }],
  ])("%s can never work", (_, env) => {
    expect(warningsOf(env)).toEqual([expect.stringContaining(`${env.ALLOWED_ORIGINS} can never work`)]);
    const over = { ...env, COOKIE_SAMESITE: "None" };
    expect(warningsOf(over)).toEqual([]);
  });

  test.each<[string, Record<string, string>]>([
    ["a sibling", { ...HTTPS, ALLOWED_ORIGINS: "https://app.example.com,https://example.com:8443" }],
    ["another port", { ALLOWED_ORIGINS: "http://127.0.0.1:3000" }],
    ["unknown, behind a proxy", { TRUST_PROXY: "1", ALLOWED_ORIGINS: "https://app.example.org" }],
    ["unknown, on every address", { HOST: "0.0.0.0", ALLOWED_ORIGINS: "https://app.example.org" }],
  ])("that is %s is not reported", (_, env) => {
    expect(warningsOf(env)).toEqual([]);
  });
});
