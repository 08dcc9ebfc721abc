/** Values of variables as `config show` prints them. */
import { describe, expect, test } from "vitest";
import { shownDefault, shownValue, variableAsJson } from "../../../src/service/cli/config.ts";

describe("of what is set", () => {
  test.each([
    ["PORT", "8080", "8080"],
    ["ADMIN_TOKENS", "a,b,c", "(hidden: 3)"],
    ["REDIS_PASSWORD", "secret", "(hidden: 1)"],
    ["OTEL_EXPORTER_OTLP_HEADERS", "key=secret", "(hidden: 1)"],
    ["CLIENT_SECRET", "secret", "(hidden: 1)"],
    ["API_KEY", "secret", "(hidden: 1)"],
    ["TLS_KEY_FILE", "/etc/key.pem", "/etc/key.pem"],
    ["TOKENS_FILE", "/etc/tokens", "/etc/tokens"],
    ["REDIS_URL", "redis://user:secret@host:6379/0?key=secret", "redis://user:(hidden)@host:6379/0?(hidden)"],
    ["REDIS_URL", "redis://:secret@host", "redis://:(hidden)@host"],
    ["REDIS_URL", "redis://user:se@cr:et@host", "redis://user:(hidden)@host"],
    ["REDIS_URL", "redis://host:6379#secret", "redis://host:6379?(hidden)"],
    ["REDIS_URL", "redis://host:6379", "redis://host:6379"],
    ["REDIS_URL", "rediss+a://user:secret@host\n?key=secret", "rediss+a://user:(hidden)@host\n?(hidden)"],
    ["REDIS_URL", "host?key=1", "host?key=1"],
    ["OTEL_EXPORTER_OTLP_ENDPOINT", "https://c.example/v1?key=secret", "https://c.example/v1?(hidden)"],
    ["ISSUER", "https://a.example?b", "https://a.example?(hidden)"],
    ["NOT_THE_ISSUER", "https://a.example?b", "https://a.example?b"],
    ["ALLOWED_ORIGINS", "see https://user:secret@a.example", "see https:(hidden)@a.example"],
  ])("%s=%s is %s", (name, text, shown) => {
    expect(shownValue(name, text)).toBe(shown);
  });
});

describe("of what is not set", () => {
  test.each<[string, unknown, string]>([
    ["ADMIN_TOKENS", undefined, "(made in DATA_DIR)"],
    ["ISSUER", undefined, "(http://127.0.0.1:PORT)"],
    ["AUDIENCE", undefined, "(ISSUER)"],
    ["REDIS_URL", undefined, "(none)"],
    ["ALLOWED_ORIGINS", [], "(none)"],
    ["ALLOWED_ORIGINS", ["a", "b"], "a,b"],
    ["RATE_LIMIT_REFRESH", { count: 10, windowMs: 30_000 }, "10/30s"],
    ["SESSION_IDLE_TTL", 14 * 86_400_000, "14d"],
    ["SESSION_IDLE_TTL", 36 * 3_600_000, "36h"],
    ["ACCESS_TOKEN_TTL", 300_000, "5m"],
    ["REUSE_INTERVAL", 90_000, "90s"],
    ["REUSE_INTERVAL", 10_000, "10s"],
    ["DRAIN_DELAY", 250, "250ms"],
    ["DRAIN_DELAY", 0, "0s"],
    ["REDIS_COMMAND_TIMEOUT", 1_500, "1500ms"],
    ["JWKS_MAX_AGE", 60_000, "1m"],
    ["EVENT_RETENTION", 86_400_000, "1d"],
    ["MAX_BODY_BYTES", 60_000, "60000"],
    ["OTEL_METRIC_EXPORT_INTERVAL", 60_000, "60000"],
    ["CONSOLE", true, "true"],
  ])("%s of %j is %s", (name, value, shown) => {
    expect(shownDefault(name, value)).toBe(shown);
  });
});

describe("for programs", () => {
  test.each<[string, string | undefined, unknown, object]>([
    ["PORT", "8080", 8080, { source: "environment", value: 8080 }],
    ["PORT", undefined, 8080, { source: "default", value: 8080 }],
    ["PORT", "", 8080, { source: "default", value: 8080 }],
    ["PORT", "x", undefined, { source: "environment", value: null }],
    ["ADMIN_TOKENS", "a", ["a"], { source: "environment", secret: true }],
    ["TLS_CERT_FILE", "/c.pem", "PEM", { source: "environment", value: "/c.pem" }],
    ["REDIS_URL", "redis://u:p@h?q", {}, { source: "environment", value: "redis://u@h" }],
    ["ALLOWED_ORIGINS", "x", ["https://u:p@h", 1], { source: "environment", value: ["https://u@h", 1] }],
  ])("%s=%s", (name, text, value, expected) => {
    expect(variableAsJson(name, text, value)).toEqual({ name, ...expected });
  });
});
