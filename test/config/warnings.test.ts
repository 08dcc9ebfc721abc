import { describe, expect, test } from "vitest";
import { configVariables, readConfig } from "../../src/config/config.ts";
import { configWarnings, distance } from "../../src/config/warnings.ts";

const warningsOf = (env: Record<string, string>) => configWarnings(env, readConfig(env));

describe("a misspelt variable", () => {
  test.each([
    ["PROT", "PORT"],
    ["ACCESS_TOKEN_TLL", "ACCESS_TOKEN_TTL"],
    ["port", "PORT"],
    ["COOKIE_SAME_SITE", "COOKIE_SAMESITE"],
    ["REDIS_URI", "REDIS_URL"],
    ["ALOWED_ORIGIN", "ALLOWED_ORIGINS"],
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
    const foreign = ["SSL_CERT_FILE", "SSL_CERT_DIR"];
    expect(warningsOf(Object.fromEntries([...usual, ...more, ...foreign].map((name) => [name, "x"])))).toEqual([]);
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

test("a prefix of the cookie's name that protects it from no sibling domain is reported", () => {
  expect(warningsOf({ COOKIE_NAME: "__Secure-rt" })).toEqual([
    expect.stringMatching(/^COOKIE_NAME: __Secure- keeps no/),
  ]);
  expect(warningsOf({ COOKIE_NAME: "__Host-rt" })).toEqual([]);
});

describe("an allowed origin", () => {
  const HTTPS = { ISSUER: "https://auth.example.com" };
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
