/** No release is forgotten by `npm run test:upgrade`, and the page on upgrades says what it finds. */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { SCHEMA_VERSIONS } from "../../src/service/store/embedded/schema-versions.ts";
import { releases } from "./releases.ts";

const OPERATIONS = readFileSync("docs/tasks/upgrade.md", "utf8");

test("every version of the changelog is a release from which the upgrade is walked", () => {
  const changelog = readFileSync("CHANGELOG.md", "utf8");
  const versions = [...changelog.matchAll(/^## \[(\d+\.\d+\.\d+)\]/gm)].map(([, version]) => version);
  expect(releases()).toEqual(versions.reverse());
});

test("the page names every release with the schema of its embedded store, and the schema of this version", () => {
  const rows = [...OPERATIONS.matchAll(/^\| (\d+\.\d+\.\d+|this version) \| (\d+) \|/gm)].map(([, ...row]) => row);
  expect(rows.map(([version]) => version)).toEqual([...releases(), "this version"]);
  expect(rows.at(-1)?.[1]).toBe(String(SCHEMA_VERSIONS.length));
});
