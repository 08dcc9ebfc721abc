import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { AdminTokenFault, ownAdminToken } from "../../../src/service/tokens/own-admin-token.ts";

let directory = "";
let path = "";
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "own-admin-token-"));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  path = join(directory, "admin-token");
});

test("a token is made once, in a file that only its owner can read", async () => {
  const token = await ownAdminToken(path);
  expect(token).toMatch(/^[\w-]{43}$/);
  expect(readFileSync(path, "utf8")).toBe(`${token}\n`);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(await ownAdminToken(path)).toBe(token);
});

test.each(["a".repeat(32), `${"a".repeat(32)}==`, "Az09._~+/-".repeat(4)])("a file with %s is used", async (token) => {
  writeFileSync(path, ` ${token}\n`, { mode: 0o600 });
  expect(await ownAdminToken(path)).toBe(token);
});

test.each([
  "",
  "a".repeat(31),
  `${"a".repeat(31)}=`,
  `${"a".repeat(32)} b`,
  `!${"a".repeat(32)}`,
  `${"a".repeat(32)}=!`,
])("a file with %j is refused and stays", async (text) => {
  writeFileSync(path, text, { mode: 0o600 });
  await expect(ownAdminToken(path)).rejects.toThrow("holds no token of at least 32 characters");
  expect(readFileSync(path, "utf8")).toBe(text);
});

test("a file that others can read is refused without its token", async () => {
  const token = await ownAdminToken(path);
  chmodSync(path, 0o644);
  const fault = await ownAdminToken(path).catch((error: unknown) => error);
  expect(fault).toBeInstanceOf(AdminTokenFault);
  expect(String(fault)).toMatch(/chmod 600/);
  expect(String(fault)).not.toContain(token);
});

test("a directory that cannot be used is no reason to make a token", async () => {
  writeFileSync(path, "");
  await expect(ownAdminToken(join(path, "admin-token"))).rejects.toMatchObject({ code: "ENOTDIR" });
});
