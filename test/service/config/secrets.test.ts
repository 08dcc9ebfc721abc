/** Settings that may hold a secret, given by files. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { adminApiOf } from "../../../src/service/cli/admin-api/client.ts";
import { readCommandLine } from "../../../src/service/config/command-line.ts";
import { ConfigError, configVariables, readConfig } from "../../../src/service/config/config.ts";
import { scratch } from "../../support/service.ts";

function fileOf(content: string): string {
  const path = join(scratch(), "secret");
  writeFileSync(path, content);
  return path;
}

function faultsOf(read: () => unknown): readonly string[] {
  try {
    read();
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.faults;
    throw error;
  }
}

test("every setting of the service that holds a secret has the form of a file", () => {
  const names = [...configVariables().keys()];
  const secrets = names.filter((name) => /(?:^REDIS_URL|PASSWORD|TOKENS|SECRET)$/.test(name));
  expect(secrets).toEqual(expect.arrayContaining(["REDIS_URL", "REDIS_SENTINEL_PASSWORD", "ADMIN_TOKENS"]));
  expect(names).toEqual(expect.arrayContaining(secrets.map((name) => `${name}_FILE`)));
});

test("a secret is read from its file, without the line break at its end", () => {
  const { redis } = readConfig({ REDIS_URL_FILE: fileOf("redis+sentinel://:hunter2@a,b/m\n") });
  expect(redis).toMatchObject({ kind: "sentinel", password: "hunter2" });
  const token = "t".repeat(40);
  expect(readCommandLine({ ADMIN_TOKEN_FILE: fileOf(`${token}\n`) }).adminToken).toBe(token);
  expect(readCommandLine({ TOKEN_FILE: fileOf("token\n") }).token).toBe("token");
});

test.each([
  ["that is not there", "/nonexistent/redis-url", "names a file that cannot be read (ENOENT)"],
  ["that is a directory", import.meta.dirname, "names a directory, not a file"],
  ["that is empty", fileOf("\n"), "names a file that is empty"],
  ["that is too large", fileOf("r".repeat(70_000)), "names a file that is larger than 65536 bytes"],
  ["whose content is wrong", fileOf("http://:hunter2@redis"), "names a file whose content must start with redis://"],
])("a file %s is a fault that tells nothing of its content", (_, path, reason) => {
  const faults = faultsOf(() => readConfig({ REDIS_URL_FILE: path }));
  expect(faults).toEqual([expect.stringContaining(`REDIS_URL_FILE ${reason}`)]);
  expect(faults[0]).not.toContain("hunter2");
});

test("a secret that is given twice is a fault", () => {
  const env = { REDIS_URL: "redis://a", REDIS_URL_FILE: fileOf("redis://b") };
  expect(faultsOf(() => readConfig(env))).toEqual(["REDIS_URL and REDIS_URL_FILE exclude each other"]);
});

test.each(["ADMIN_TOKEN_FILE", "--token-file"])("a command that runs for long follows the token in %s", (how) => {
  const path = fileOf(`${"a".repeat(40)}\n`);
  const [env, options] = how.startsWith("--") ? [{}, { tokenFile: path }] : [{ ADMIN_TOKEN_FILE: path }, {}];
  const { adminToken } = adminApiOf(env, options);
  expect(adminToken?.()).toBe("a".repeat(40));
  writeFileSync(path, `${"b".repeat(40)}\n`);
  expect(adminToken?.()).toBe("b".repeat(40));
  // While somebody replaces the file, the earlier token stays in use.
  for (const unusable of ["", "short"]) {
    writeFileSync(path, unusable);
    expect(adminToken?.()).toBe("b".repeat(40));
  }
  writeFileSync(path, "c".repeat(40));
  expect(adminToken?.()).toBe("c".repeat(40));
});
