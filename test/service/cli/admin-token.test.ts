/** The command that makes entries of ADMIN_TOKENS_FILE, as a process of its own. */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { loadAdminAccess } from "../../../src/service/tokens/admin-access.ts";
import { compiled, PROGRAM } from "../../support/program.ts";

let file = "";
beforeEach(() => {
  const directory = mkdtempSync(join(tmpdir(), "admin-token-"));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  file = join(directory, "admins.json");
});

function adminToken(args: string[], input = "") {
  const run = spawnSync(process.execPath, [PROGRAM, "admin-token", ...args], {
    encoding: "utf8",
    env: compiled(),
    input,
  });
  return { code: run.status, out: run.stdout, err: run.stderr };
}

const WATCH = ["--name", "gateway", "--scope", "watch"];
const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");

test("a token is printed once, and its entry holds only the hash", () => {
  const { code, out } = adminToken(["create", ...WATCH, "--scope", "introspect"]);
  expect(code).toBe(0);
  const [, token = "", entry = ""] = /^token \(printed once\): (\S{43})\nentry: (.*)\n$/.exec(out) ?? [];
  expect(JSON.parse(entry)).toEqual({ name: "gateway", hash: sha256(token), scopes: ["watch", "introspect"] });
});

test("with --token-file the token is alone in a new file of its owner, and is not printed", async () => {
  const tokenFile = join(file, "..", "gateway.token");
  const umask = process.umask(0);
  onTestFinished(() => void process.umask(umask));
  const made = adminToken(["create", ...WATCH, "--file", file, "--token-file", tokenFile]);
  expect(made).toEqual({ code: 0, out: `added gateway to ${file}\n`, err: "" });
  expect(statSync(tokenFile).mode & 0o777).toBe(0o600);
  const text = readFileSync(tokenFile, "utf8");
  expect(text).toMatch(/^[\w-]{43}\n$/);
  expect((await loadAdminAccess([], file)).byToken(text.trim())?.name).toBe("gateway");

  const again = adminToken(["create", ...WATCH, "--file", file, "--token-file", tokenFile]);
  expect([again.code, again.err]).toEqual([1, `${tokenFile}: exists already, and is not replaced\n`]);
  expect([readFileSync(tokenFile, "utf8"), JSON.parse(readFileSync(file, "utf8")).admins.length]).toEqual([text, 1]);
});

test("entries are added to a file that the service takes", async () => {
  const [, token = ""] = /: (\S{43})\n/.exec(adminToken(["create", ...WATCH, "--file", file]).out) ?? [];
  const more = ["--name", "login", "--scope", "sessions:create", "--file", file];
  expect(adminToken(["certificate", "--certificate", "login.internal", ...more]).code).toBe(0);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(readFileSync(file, "utf8")).not.toContain(token);
  const access = await loadAdminAccess([], file);
  expect(access.byToken(token)?.name).toBe("gateway");
  expect(access.byCertificate(["login.internal"])?.scopes).toEqual(new Set(["sessions:create"]));
});

test("an existing token is read from standard input, and never printed", () => {
  const token = "own-".repeat(10);
  const { code, out } = adminToken(["hash", ...WATCH], `${token}\n`);
  expect([code, out.includes(sha256(token)), out.includes(token)]).toEqual([0, true, false]);
  expect(adminToken(["hash", ...WATCH], "short")).toMatchObject({ code: 1, out: "" });
});

describe("leaves the file as it is", () => {
  test.each(["{", '{"admins":{}}', '{"admins":[],"more":1}'])("when it is broken: %s", (text) => {
    writeFileSync(file, text);
    const { code, err } = adminToken(["create", ...WATCH, "--file", file]);
    expect([code, err.startsWith(`${file}: `)]).toEqual([1, true]);
    expect(readFileSync(file, "utf8")).toBe(text);
  });

  test("when the certificate is in it already", () => {
    const args = ["certificate", "--certificate", "a", ...WATCH, "--file", file];
    expect(adminToken(args).code).toBe(0);
    const before = readFileSync(file, "utf8");
    expect(adminToken(args).err).toContain("there twice");
    expect(readFileSync(file, "utf8")).toBe(before);
  });
});

test.each([
  [["frobnicate", ...WATCH], "unknown command 'frobnicate'"],
  [["create"], "required option '--name <name>' not specified"],
  [["create", "--name", "a"], "required option '--scope <scope...>' not specified"],
  [["create", ...WATCH, "--frob"], "unknown option '--frob'"],
  [["create", ...WATCH, "--certificate", "x"], "unknown option '--certificate'"],
  [["certificate", ...WATCH], "required option '--certificate <name>' not specified"],
  [["create", "--name", "a", "--scope", "everything"], "Allowed choices are sessions:create"],
])("wrong usage is refused: %j", (args, fault) => {
  const { code, out, err } = adminToken(args);
  expect([code, out]).toEqual([2, ""]);
  expect(err).toContain(fault);
});

test("a name that the audit log could not carry is refused", () => {
  expect(adminToken(["create", "--name", "a b", "--scope", "watch"])).toEqual({
    code: 2,
    out: "",
    err: "error: --name: must be 1 to 64 letters, digits or any of . _ @ : -\n",
  });
});
