import { expect, test } from "vitest";
import { readConfig } from "../../../src/service/config/config.ts";

/** Numbers without a unit in their names. They are counts or port numbers, or the name itself says what they count. */
const COUNTS = [
  ...["port", "adminPort", "trustProxy", "maxConnections", "maxConnectionsPerAddress"],
  ...["maxSessionsPerSubject", "redisWaitReplicas", "db", "count", "maxWaiting", "samplerRatio", "workers"],
];

/** Returns the names of all numbers in a value, however deep. */
function numbersIn(value: object): string[] {
  return Object.entries(value).flatMap(([name, member]) => {
    if (typeof member === "object" && member !== null) return numbersIn(member);
    return typeof member === "number" ? [name] : [];
  });
}

test("every number of the configuration carries its unit in its name, or counts something", () => {
  const config = readConfig({
    REDIS_URL: "redis://127.0.0.1:6379",
    MAX_CONNECTIONS_PER_ADDRESS: "10",
    COOKIE_NAME: "__Host-refresh_token",
    COOKIE_MIGRATE_UNTIL: "2027-01-31",
    OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:4318",
  });
  const names = numbersIn(config);
  const units = names.filter((name) => /(?:Ms|Seconds|Bytes)$/.test(name));
  expect(units.length).toBeGreaterThan(10);
  expect(names.filter((name) => !units.includes(name) && !COUNTS.includes(name))).toEqual([]);
});
