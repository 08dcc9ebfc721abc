/**
 * The published packages at both ends of the version ranges of their dependencies: with the newest dependencies and peers in npm's
 * registry, and with the oldest peers. All other tests use the oldest dependencies, which are those of the lock file.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { buildPackages, packageNames, readManifest } from "../../deploy/packages/build.ts";
import { scratch } from "../support/service.ts";
import { FIRST_USE } from "./first-use.ts";
import { installScript } from "./installed.ts";

const OUT = resolve(import.meta.dirname, "../../dist/newest");
const TIMEOUT_MS = 600_000;
/** The oldest version of a range such as `>=18` or `^1.3.0`. */
const oldestOf = (range: string) => [...range.replace(/^\D+/, "").split("."), "0", "0"].slice(0, 3).join(".");

const ENDS = [
  ["the newest dependencies", packageNames(), () => "latest"],
  ["the oldest peers", packageNames().filter((folder) => readManifest(folder).peerDependencies), oldestOf],
] as const;

/** Returns the directories of all packages below a `node_modules`. */
function installedBelow(modules: string): string[] {
  if (!existsSync(modules)) return [];
  const names = readdirSync(modules).flatMap((name) =>
    name.startsWith("@") ? readdirSync(join(modules, name)).map((inner) => join(name, inner)) : [name],
  );
  const packages = names.map((name) => join(modules, name)).filter((path) => existsSync(join(path, "package.json")));
  return packages.flatMap((path) => [path, ...installedBelow(join(path, "node_modules"))]);
}

describe("a project whose lock file has older versions", () => {
  const OLD = ["@bufbuild/protobuf@2.10.0", "@connectrpc/connect@2.1.0"];
  let directory: string;
  const npm = (...args: string[]) =>
    // The level is given, because `npm run --silent` passes its own on.
    spawnSync("npm", [...args, "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel", "error"], {
      cwd: directory,
      encoding: "utf8",
    });
  const pack = (folder: string) => {
    const { stdout } = npm("pack", "--silent", join(OUT, folder));
    return `./${stdout.trim().split("\n").at(-1)}`;
  };
  beforeAll(() => {
    buildPackages(["connect-http-routes", "protoc-gen-connect-http", "protoc-gen-http-openapi"], OUT);
    directory = scratch();
    writeFileSync(join(directory, "package.json"), '{"type":"module"}');
    expect(npm("install", "--save-exact", ...OLD).status).toBe(0);
  }, TIMEOUT_MS);

  test("runs both plugins, which bring what they need", { timeout: TIMEOUT_MS }, () => {
    expect(npm("install", pack("protoc-gen-connect-http"), pack("protoc-gen-http-openapi")).status).toBe(0);
    for (const command of ["protoc-gen-connect-http", "protoc-gen-http-openapi"]) {
      const run = spawnSync(join(directory, "node_modules/.bin", command), ["--version"], { encoding: "utf8" });
      expect([run.stderr, run.stdout]).toEqual(["", expect.stringContaining(command)]);
    }
  });

  test("gets no second copy of Connect beside its own: npm refuses the runtime", { timeout: TIMEOUT_MS }, () => {
    const { status, stderr } = npm("install", pack("connect-http-routes"));
    expect(status).not.toBe(0);
    expect(stderr).toMatch(/ERESOLVE[\s\S]*connect-http-routes/);
  });
});

describe.each(ENDS)("with %s", (_, folders, versionOf) => {
  beforeAll(() => buildPackages(folders, OUT));

  test.each(folders)("%s installs without a script, and works", { timeout: TIMEOUT_MS }, (folder) => {
    const directory = scratch();
    const run = (command: string, ...args: string[]) =>
      execFileSync(command, args, { cwd: directory, encoding: "utf8" });
    writeFileSync(join(directory, "package.json"), '{"type":"module"}');
    // The gateway depends on the HTTP layer, which is not in the registry before it is published, so both are packed.
    const packed = (folder === "connect-http-gateway" ? ["connect-http-routes", folder] : [folder]).map(
      (each) => `./${run("npm", "pack", "--silent", join(OUT, each)).trim().split("\n").at(-1)}`,
    );
    const peers = Object.entries(readManifest(folder).peerDependencies ?? {}).map(
      ([name, range]) => `${name}@${versionOf(range)}`,
    );
    run("npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", ...packed, ...peers);
    const installed = installedBelow(join(directory, "node_modules"));
    expect(installed.length).toBeGreaterThan(peers.length);
    expect(installed.flatMap((path) => installScript(path) ?? [])).toEqual([]);
    writeFileSync(join(directory, "use.js"), `${FIRST_USE[folder]}\nconsole.log("works");`);
    expect(run(process.execPath, "use.js")).toBe("works\n");
  });
});
