/** The code in gen/ is up to date with the .proto files, and another team can generate code from these files. */
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, test } from "vitest";
import { scratch } from "./support/service.ts";

const ROOT = join(import.meta.dirname, "..");
/** The plugins of buf run on the Node of this process, even if the machine has another one. */
const env = { ...process.env, PATH: `${dirname(process.execPath)}${delimiter}${process.env.PATH}` };

const buf = (cwd: string, ...args: string[]) =>
  execFileSync(process.execPath, [join(ROOT, "node_modules/@bufbuild/buf/bin/buf"), ...args], {
    cwd,
    env,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
  });
/** Returns every file below a directory, with its contents. */
function contents(directory: string): Record<string, string> {
  const names = readdirSync(directory, { recursive: true, encoding: "utf8" }).toSorted();
  return Object.fromEntries(
    names
      .filter((name) => statSync(join(directory, name)).isFile())
      .map((name) => [name, readFileSync(join(directory, name), "utf8")]),
  );
}

function protoCopy(directory: string): string {
  cpSync(join(ROOT, "proto"), join(directory, "proto"), { recursive: true });
  return "proto";
}

/** Creates a git repository with the files of a clone that buf reads. Returns the path of its `.git`. */
function gitCopy(directory: string): string {
  mkdirSync(directory);
  for (const name of ["proto", "buf.yaml"]) cpSync(join(ROOT, name), join(directory, name), { recursive: true });
  const git = (...args: string[]) =>
    execFileSync("git", ["-c", "user.name=test", "-c", "user.email=test@example.com", ...args], { cwd: directory });
  git("init", "--quiet", "--initial-branch=main");
  git("add", ".");
  git("commit", "--quiet", "--message=contracts");
  return join(directory, ".git");
}

test("generating again changes nothing", () => {
  const copy = scratch();
  for (const name of ["proto", "buf.yaml", "buf.gen.yaml", "package.json"])
    cpSync(join(ROOT, name), join(copy, name), { recursive: true });
  // The code generators in src/ and deploy/ import generated code by relative paths. Links to these folders let them find gen/ of this
  // repository, because the copy has no gen/ yet.
  for (const name of ["deploy", "src", "node_modules"]) symlinkSync(join(ROOT, name), join(copy, name));
  buf(copy, "generate");
  const [fresh, committed] = [contents(join(copy, "gen")), contents(join(ROOT, "gen"))];
  expect(Object.keys(committed)).toEqual(Object.keys(fresh));
  const stale = Object.keys(fresh).filter((name) => fresh[name] !== committed[name]);
  expect(stale, "run npm run generate").toEqual([]);
});

test.each([
  ["a copy of proto/", protoCopy],
  ["the directory of a clone", () => ROOT],
  ["a git repository", (theirs: string) => `${gitCopy(join(theirs, "upstream"))}#branch=main`],
])("another team generates stubs from %s, of the public contracts alone", async (_, input) => {
  const theirs = scratch();
  // The other team's project has installed the code generators of this project.
  symlinkSync(join(ROOT, "node_modules"), join(theirs, "node_modules"));
  writeFileSync(join(theirs, "package.json"), '{"type":"module"}');
  mkdirSync(join(theirs, "stubs"));
  const plugin = { local: ["node", "node_modules/@bufbuild/protoc-gen-es/bin/protoc-gen-es"], out: "stubs" };
  const template = {
    version: "v2",
    plugins: [{ ...plugin, include_imports: true, strategy: "all", opt: ["target=js", "import_extension=js"] }],
  };
  buf(theirs, "generate", input(theirs), "--template", JSON.stringify(template));
  const stubs = await import(pathToFileURL(join(theirs, "stubs/auth/v1/session_pb.js")).href);
  expect(Object.keys(stubs.SessionService.method)).toContain("refresh");
  const admin = await import(pathToFileURL(join(theirs, "stubs/auth/admin/v1/session_admin_pb.js")).href);
  expect(Object.keys(admin.SessionAdminService.method)).toContain("watchRevocations");
  expect(readdirSync(join(theirs, "stubs")).toSorted()).toEqual(["auth", "buf", "envoy", "google", "grpc"]);
});
