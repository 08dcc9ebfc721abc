/** The recipes of CONTRIBUTING.md name every file in which their example occurs. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

const CONTRIBUTING = readFileSync("CONTRIBUTING.md", "utf8");
/** The sections whose first line names an example: `Like …`. */
const RECIPES = CONTRIBUTING.split(/^#{2,3} (?=.*\n\nLike `)/m)
  .slice(1)
  .map((section) => ({
    title: section.slice(0, section.indexOf("\n")),
    names: [...(section.match(/^Like (`.*?)\./m)?.[1] ?? "").matchAll(/`([^`]+)`/g)].map(([, name = ""]) => name),
    files: [
      ...section
        .split(/^#/m, 1)
        .join()
        .matchAll(/^\| `([^`]+)` \|/gm),
    ].map(([, file = ""]) => file),
  }));

/** What nobody writes to add such a thing: the recipes, the history, what is generated, and the examples for applications. */
const OTHERS = [
  "CONTRIBUTING.md",
  "*CHANGELOG.md",
  "test/released",
  "gen",
  "docs/reference/command-line.md",
  "examples",
];

/** Returns the files that contain one of the names as a word. */
function filesWith(names: readonly string[]): string[] {
  const words = names.flatMap((name) => ["-e", name]);
  const args = ["grep", "--untracked", "-lwF", ...words, "--", ".", ...OTHERS.map((path) => `:!${path}`)];
  return execFileSync("git", args, { encoding: "utf8" }).trim().split("\n");
}

test("there are the recipes that people look for", () => {
  expect(RECIPES.map(({ title }) => title)).toEqual(
    expect.arrayContaining(["A field of a session", "An RPC", "A setting", "A metric", "A rate limit", "A store"]),
  );
});

test.each(RECIPES)("the recipe $title has every file of its example", ({ names, files }) => {
  const found = filesWith(names);
  // Many tests use an example only to test something else. So a recipe selects among them.
  expect(files.filter((file) => !file.startsWith("test/")).toSorted()).toEqual(
    found.filter((file) => !file.startsWith("test/")),
  );
  expect(files.filter((file) => !found.includes(file))).toEqual([]);
  expect(files.some((file) => file.startsWith("test/"))).toBe(true);
});
