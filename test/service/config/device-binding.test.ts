import { describe, expect, test } from "vitest";
import { ConfigError, readConfig } from "../../../src/service/config/config.ts";
import { configFindings, lineOf } from "../../../src/service/config/findings.ts";

function faultsOf(env: Record<string, string>): readonly string[] {
  try {
    readConfig(env);
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.faults;
    throw error;
  }
}

test("device binding is off by default, and a device cookie lives for 5 minutes", () => {
  expect(readConfig({})).toMatchObject({ deviceBinding: false, deviceSessionTtlMs: 300_000 });
  expect(readConfig({ DEVICE_BINDING: "ON", TRUST_PROXY: "1" })).toMatchObject({ deviceBinding: true });
});

describe("device binding needs what browsers bind", () => {
  test("https: of its own, or of a proxy in front", () => {
    expect(faultsOf({ DEVICE_BINDING: "on" })).toEqual([expect.stringContaining("needs https")]);
    expect(faultsOf({ DEVICE_BINDING: "on", TRUST_PROXY: "1" })).toEqual([]);
    const here = import.meta.filename;
    expect(faultsOf({ DEVICE_BINDING: "on", TLS_CERT_FILE: here, TLS_KEY_FILE: here })).toEqual([]);
    expect(faultsOf({ DEVICE_BINDING: "off" })).toEqual([]);
  });

  test("cookies that are Secure", () => {
    const faults = faultsOf({ DEVICE_BINDING: "on", TRUST_PROXY: "1", COOKIE_SECURE: "false" });
    expect(faults).toEqual([expect.stringContaining("COOKIE_SECURE")]);
  });
});

test.each([
  ["100s", 1],
  ["101s", 0],
])("a device cookie that lives %s is warned of %i times", (DEVICE_SESSION_TTL, count) => {
  const env = { DEVICE_BINDING: "on", TRUST_PROXY: "1", DEVICE_SESSION_TTL };
  expect(
    configFindings(env, readConfig(env))
      .map(lineOf)
      .filter((line) => line.includes("DEVICE_SESSION_TTL")),
  ).toHaveLength(count);
});

test.each([
  [undefined, 0],
  ["/", 0],
  ["/v1", 0],
  ["/v1/auth/", 0],
  ["/v1/auth/device", 0],
  ["/v1/auth/refresh", 1],
  ["/v1/auth/device/refresh", 1],
  ["/v", 1],
  ["/api/v1/auth", 1],
])("a cookie with the path %s is warned of %i times", (path, count) => {
  const env = { TRUST_PROXY: "1", ...(path !== undefined && { COOKIE_PATH: path }) };
  const warned = (DEVICE_BINDING: string) => {
    const all = { ...env, DEVICE_BINDING };
    return configFindings(all, readConfig(all))
      .map(lineOf)
      .filter((line) => line.startsWith("COOKIE_PATH"));
  };
  expect(warned("on")).toHaveLength(count);
  expect(warned("off")).toEqual([]);
});
