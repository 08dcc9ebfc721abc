/** The npm scripts and paths that documents, comments and scripts name exist. Vitest passes over a path without tests, and long suites run seldom. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

const FILES = execFileSync("git", ["ls-files"], { encoding: "utf8" }).trim().split("\n");
const LISTS = FILES.filter(
  (file) => /\.(sh|ya?ml)$/.test(file) || file === "package.json" || file === "test/busy/run.ts",
);
/** A path, or the beginning of one, as Vitest takes it. */
const PATH = /(?<![\w./@-])(?:src|test|deploy|examples|docs)\/[\w./-]*\w/g;

const textOf = (file: string) => readFileSync(file, "utf8");

test("every npm script that a document or a comment names exists", () => {
  const { scripts } = JSON.parse(textOf("package.json")) as { readonly scripts: Readonly<Record<string, string>> };
  const named = FILES.filter((file) => /\.(md|ts|sh|ya?ml|json)$/.test(file)).flatMap((file) =>
    [...textOf(file).matchAll(/npm run (?:-s |--silent )?([a-z][\w:-]*)/g)].map(([, name = ""]) => `${file}: ${name}`),
  );
  expect(named.length).toBeGreaterThan(50);
  expect(named.filter((name) => !Object.hasOwn(scripts, name.split(": ")[1] ?? ""))).toEqual([]);
});

test("every path that a script, a workflow or a list of tests names exists", () => {
  const named = LISTS.flatMap((file) => [...textOf(file).matchAll(PATH)].map(([path]) => ({ file, path })));
  expect(named.length).toBeGreaterThan(50);
  expect(named.filter(({ path }) => !FILES.some((file) => file.startsWith(path)))).toEqual([]);
});
