/** `buf generate` with and without `strategy: all`, which decides whether one run of the plugin sees all packages. */
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, expect, test } from "vitest";
import { BUF } from "../support/buf.ts";
import type { Document } from "./document.ts";

const directory = mkdtempSync(join(tmpdir(), "strategy-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

cpSync("proto/google", join(directory, "google"), { recursive: true });
for (const name of ["one", "two"]) {
  mkdirSync(join(directory, name));
  writeFileSync(
    join(directory, name, "service.proto"),
    `syntax = "proto3"; package ${name}; import "google/api/annotations.proto"; message M {}
     service S { rpc Get(M) returns (M) { option (google.api.http) = {get: "/${name}"}; } }`,
  );
}

const PLUGIN = JSON.stringify([process.execPath, resolve("src/protoc-gen-http-openapi/main.ts")]);

/** Runs buf with these plugins. Returns the paths of the document, or what buf prints if it fails. */
function generate(plugins: string): string[] | string {
  writeFileSync(join(directory, "buf.gen.yaml"), `version: v2\ninputs:\n  - directory: .\nplugins:\n${plugins}`);
  const args = ["generate", "--path", "one", "--path", "two"];
  const { status, stderr } = spawnSync(BUF, args, { cwd: directory });
  if (status !== 0) return stderr.toString();
  return Object.keys((JSON.parse(readFileSync(join(directory, "gen/openapi.json"), "utf8")) as Document).paths);
}

test("with it, the document has every package", () => {
  const entry = (strategy: string) => `  - out: gen\n    local: ${PLUGIN}\n    ${strategy}\n`;
  expect(generate(entry("strategy: all # every file at once"))).toEqual(["/one", "/two"]);
  expect(generate(`  - {local: ${PLUGIN}, out: gen, "strategy": "all"}\n`)).toEqual(["/one", "/two"]);
});

test("without it, generation fails with the line to add", () => {
  const needed = `${join(directory, "buf.gen.yaml")}: the entry of protoc-gen-http-openapi needs the line "strategy: all"`;
  const other = `  - local: [${process.execPath}, ${resolve("src/protoc-gen-connect-http/main.ts")}]\n    out: gen\n    strategy: all\n`;
  const entry = `  - local: ${PLUGIN}\n    out: gen\n`;
  expect(generate(entry + other)).toContain(needed);
  expect(generate(`${other}${entry}    # strategy: all\n`)).toContain(needed);
  expect(generate(`${entry}    strategy: directory\n`)).toContain(needed);
});
