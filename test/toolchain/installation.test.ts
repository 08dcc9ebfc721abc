/** The packages that `npm ci` installs: few enough for an installation in seconds, and none whose install script reports usage data. */
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { scratch } from "../support/service.ts";

/**
 * The greatest number of installed files on Linux, without the Node of test/toolchain. The number determines the time, because npm takes
 * about as long for a small file as for a large one.
 */
const MAX_FILES = 13_500;

type Lock = { readonly packages: Readonly<Record<string, { readonly hasInstallScript?: boolean }>> };

test("the scripts of two packages run, which report nothing", () => {
  const { packages } = JSON.parse(readFileSync("package-lock.json", "utf8")) as Lock;
  const paths = Object.keys(packages).filter((path) => path !== "" && packages[path]?.hasInstallScript);
  // The script of buf selects the program for the platform; that of protobufjs compares version numbers.
  expect(paths).toEqual(["node_modules/@bufbuild/buf", "node_modules/protobufjs"]);
});

test("what only a test runs or reads is installed with the tests, by test/dependencies", () => {
  const files = readdirSync("node_modules", { recursive: true, withFileTypes: true, encoding: "utf8" }).filter(
    (entry) => entry.isFile() && !entry.parentPath.includes("node_modules/."),
  );
  expect(files.length, "move what nothing imports to test/dependencies/tools; if you have, run npm ci").toBeLessThan(
    MAX_FILES,
  );
});

test("a Node that is not the one of the lock file is not unpacked", () => {
  const directory = scratch();
  const lock = join(directory, "package-lock.json");
  const { platform: os, arch: cpu } = process;
  const listed = { version: "2.1.3", integrity: `sha512-${"A".repeat(86)}==`, os, cpu };
  writeFileSync(lock, JSON.stringify({ packages: { "node_modules/ms": listed } }));
  const unpacked = spawnSync(process.execPath, ["test/toolchain/unpack.js", lock, join(directory, "to")]);
  expect([unpacked.status, String(unpacked.stderr)]).toEqual([
    1,
    expect.stringContaining("ms@2.1.3 is not the package"),
  ]);
});
