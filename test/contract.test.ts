/** The contracts stay compatible with the last release, and with every earlier state in the history of this clone. */
import { execFileSync } from "node:child_process";
import { cpSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { scratch } from "./support/service.ts";

const ROOT = join(import.meta.dirname, "..");
const RELEASED = join(import.meta.dirname, "released");

const byVersion = new Intl.Collator("en", { numeric: true }).compare;
const lastRelease = readdirSync(RELEASED, { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name)
  .toSorted(byVersion)
  .at(-1) as string;

/** Runs `buf breaking` in a directory. Returns its report; empty if nothing is broken. */
function breaches(directory: string, against: string): string {
  try {
    const buf = join(ROOT, "node_modules/@bufbuild/buf/bin/buf");
    execFileSync(process.execPath, [buf, "breaking", "--against", against], { cwd: directory, stdio: "pipe" });
    return "";
  } catch (error) {
    const { stdout, stderr } = error as { readonly stdout: Buffer; readonly stderr: Buffer };
    return `${stdout}${stderr}`;
  }
}

/** Returns a copy of the contracts as a buf workspace, with one of the files changed. */
function contracts(change?: { readonly file: string; readonly from: string; readonly to: string }): string {
  const copy = scratch();
  cpSync(join(ROOT, "proto"), join(copy, "proto"), { recursive: true });
  const [breaking = ""] = /^breaking:[\s\S]*/m.exec(readFileSync(join(ROOT, "buf.yaml"), "utf8")) ?? [];
  writeFileSync(join(copy, "buf.yaml"), `version: v2\nmodules:\n  - path: proto\n${breaking}`);
  if (change !== undefined) {
    const path = join(copy, "proto", change.file);
    const text = readFileSync(path, "utf8");
    expect(text).toContain(change.from);
    writeFileSync(path, text.replace(change.from, change.to));
  }
  return copy;
}

test("the contracts break no caller of the last release", () => {
  expect(breaches(contracts(), join(RELEASED, lastRelease))).toBe("");
});

test.each([
  ["a field that changes its type", "  string reason = 4;", "  RevocationReason reason = 4;"],
  ["a field that is gone", "  string cursor = 2;\n", ""],
  ["an RPC that is renamed", "rpc GetSession(", "rpc FetchSession("],
])("%s is reported", (_, from, to) => {
  const file = "auth/admin/v1/session_admin.proto";
  expect(breaches(contracts({ file, from, to }), join(RELEASED, lastRelease))).toContain(file);
});

const git = (...args: string[]) =>
  execFileSync("git", args, { cwd: ROOT, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();

/** Returns the commits to compare with: the remote's main branch, the present commit, and the one before the last change of proto/. */
function earlierStates(): readonly string[] {
  try {
    const head = git("rev-parse", "HEAD");
    const landed = git("for-each-ref", "--format=%(objectname)", "refs/remotes/origin/main");
    const [, before] = git("log", "--first-parent", "--max-count=2", "--format=%H", "--", "proto").split("\n");
    return [...new Set([landed, head, before ?? ""])].filter((ref) => ref !== "");
  } catch {
    return []; // If the tree is not a clone of the repository, it has no earlier states.
  }
}

/** Returns only the public contracts of an earlier state, because callers do not depend on other modules of the workspace. */
function contractsOf(ref: string): string {
  const copy = scratch();
  const archive = execFileSync("git", ["archive", ref, "proto"], { cwd: ROOT });
  execFileSync("tar", ["x"], { cwd: copy, input: archive });
  return join(copy, "proto");
}

test("the contracts break no caller of an earlier state in this clone", () => {
  for (const ref of earlierStates()) expect(breaches(contracts(), contractsOf(ref)), ref).toBe("");
});
