/** The limits for slow readers in docs/reference/limits.md name constants of the code, and state their values. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { configVariables } from "../src/service/config/config.ts";
import { tableRows } from "./support/named-tests.ts";

const ROOT = join(import.meta.dirname, "..");
const read = (name: string) => readFileSync(join(ROOT, name), "utf8");

const UNITS: Readonly<Record<string, number>> = { s: 1000, KiB: 1024, MiB: 1024 ** 2, MB: 1, "": 1 };

/** Converts a value in docs/reference/limits.md, such as `30 s`, `64 KiB` or `1,000`, to a number in the unit of the constant that it documents. */
function numberOf(text: string): number {
  const [, digits = "", unit = ""] = /^([\d,]+) ?(\w*)$/.exec(text) ?? [];
  return Number(digits.replaceAll(",", "")) * (UNITS[unit] ?? Number.NaN);
}

/**
 * Returns the value of a constant or an option in a file. For a file in src/service/config/, this value is the default of the environment variable
 * `name`.
 */
function definedIn(file: string, name: string): number | undefined {
  if (file.startsWith("src/service/config/"))
    return read(file).includes(`"${name}"`) ? Number(configVariables().get(name)) : undefined;
  const [, product] = new RegExp(`(?:const ${name} =|\\b${name}:) ([\\d_*. ]+)[;,]`).exec(read(file)) ?? [];
  return product?.split("*").reduce((value, factor) => value * Number(factor.replaceAll("_", "")), 1);
}

const unquoted = (cell = "") => cell.replaceAll("`", "");
const ROWS = tableRows(read("docs/reference/limits.md"), "Slow readers").map(
  ([, bound = "", constant, file, value = "", , seen]) => {
    return { bound, constant: unquoted(constant), file: unquoted(file), value, seen: unquoted(seen) };
  },
);

test.each(ROWS)("$constant in $file is $value", ({ constant, file, value }) => {
  expect(definedIn(file, constant)).toBe(numberOf(value));
});

test("the events and metrics in which a bound is seen are documented", () => {
  const events = read("docs/reference/events.md");
  const seen = ROWS.map((row) => row.seen).filter((name) => name !== "–");
  expect(seen.length).toBeGreaterThan(5);
  expect(seen.filter((name) => !events.includes(`| \`${name}\` |`))).toEqual([]);
});

/** The page docs/reference/limits.md must list every file with a constant that delays a slow reader or closes its connection. */
test("no file has a time limit for readers that the page leaves out", () => {
  const listed = new Set(ROWS.map(({ file, constant }) => `${file} ${constant}`));
  for (const file of ["src/platform/listener/limits.ts", "src/service/session/feed/feed.ts"]) {
    const constants = [...read(file).matchAll(/const ((?:WRITE|WATCHER)_TIMEOUT_MS) =/g)].map(
      ([, name]) => `${file} ${name}`,
    );
    expect(constants.length).toBeGreaterThan(0);
    expect(constants.filter((name) => !listed.has(name))).toEqual([]);
  }
});
