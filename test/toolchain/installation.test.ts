/** What `npm ci` installs for whoever works on this repository: little enough to take seconds, and nothing that reports it. */
import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";

/** On Linux; the Node of test/toolchain is not counted. It takes npm about as long to write a small file as a large one. */
const MAX_FILES = 13_500;

type Lock = { readonly packages: Readonly<Record<string, { readonly hasInstallScript?: boolean }>> };

test("the scripts of two packages run, which report nothing", () => {
  const { packages } = JSON.parse(readFileSync("package-lock.json", "utf8")) as Lock;
  const paths = Object.keys(packages).filter((path) => path !== "" && packages[path]?.hasInstallScript);
  // buf puts the program of the platform in place; protobufjs compares the version with the one that its user asks for.
  expect(paths).toEqual(["node_modules/@bufbuild/buf", "node_modules/protobufjs"]);
});

test("what only a test runs or reads is installed with the tests, by test/tools", () => {
  const files = readdirSync("node_modules", { recursive: true, withFileTypes: true, encoding: "utf8" }).filter(
    (entry) => entry.isFile() && !entry.parentPath.includes("node_modules/."),
  );
  expect(files.length, "move what nothing imports to test/tools; if you have, run npm ci").toBeLessThan(MAX_FILES);
});
