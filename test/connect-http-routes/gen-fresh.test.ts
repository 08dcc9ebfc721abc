import { execFileSync } from "node:child_process";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join, resolve } from "node:path";
import { afterAll, expect, test } from "vitest";

const copy = mkdtempSync(join(tmpdir(), "http-gen-"));
afterAll(() => rmSync(copy, { recursive: true }));

test("generating the test services again changes nothing", () => {
  for (const name of [
    "test/connect-http-routes/proto",
    "test/connect-http-routes/buf.gen.yaml",
    "test/connect-http-routes/buf.yaml",
  ]) {
    cpSync(name, join(copy, name), { recursive: true, dereference: true });
  }
  for (const name of ["src", "gen", "node_modules"]) symlinkSync(resolve(name), join(copy, name));
  const PATH = `${dirname(process.execPath)}${delimiter}${process.env.PATH}`;
  const buf = resolve("node_modules/@bufbuild/buf/bin/buf");
  execFileSync(process.execPath, [buf, "generate", "--template", "test/connect-http-routes/buf.gen.yaml"], {
    cwd: copy,
    env: { ...process.env, PATH },
    stdio: "pipe",
  });
  expect(contents(join(copy, "test/connect-http-routes/gen"))).toEqual(contents("test/connect-http-routes/gen"));
});

function contents(directory: string): Record<string, string> {
  const names = readdirSync(directory, { recursive: true, encoding: "utf8" }).toSorted();
  const files = names.filter((name) => statSync(join(directory, name)).isFile());
  return Object.fromEntries(files.map((name) => [name, readFileSync(join(directory, name), "utf8")]));
}
