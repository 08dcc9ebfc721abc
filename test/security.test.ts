/**
 * The table of security.md has every item of the ASVS chapters that it claims to cover. Each item has an existing test, or the reason
 * why it has none.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { missingTests, namedTests, tableRows } from "./support/named-tests.ts";

const DOCUMENT = readFileSync(join(import.meta.dirname, "security.md"), "utf8");
const ROWS = tableRows(DOCUMENT, "ASVS 5.0");

/** How many items each section has (OWASP ASVS 5.0.0). */
const SECTIONS: Readonly<Record<string, number>> = {
  "3.3": 5,
  "3.4": 8,
  "3.5": 8,
  "7.1": 3,
  "7.2": 4,
  "7.3": 2,
  "7.4": 5,
  "7.5": 3,
  "7.6": 2,
  "9.1": 3,
  "9.2": 4,
  "10.4": 16,
  "14.1": 2,
  "14.2": 8,
  "14.3": 3,
  "16.1": 1,
  "16.2": 5,
  "16.3": 4,
  "16.4": 3,
  "16.5": 4,
};

/** Splits a range such as `10.4.1–10.4.4` into its four items. */
function itemsOf(cell: string): string[] {
  const [first = "", last = first] = cell.split("–");
  const section = first.slice(0, first.lastIndexOf("."));
  const numberOf = (item: string) => Number(item.slice(item.lastIndexOf(".") + 1));
  const length = numberOf(last) - numberOf(first) + 1;
  return Array.from({ length }, (_, at) => `${section}.${numberOf(first) + at}`);
}

test("every item of the chapters has a row", () => {
  const items = Object.entries(SECTIONS).flatMap(([section, count]) =>
    Array.from({ length: count }, (_, at) => `${section}.${at + 1}`),
  );
  expect(ROWS.flatMap(([item = ""]) => itemsOf(item))).toEqual(items);
});

test("every row names a test, or says why there is none", () => {
  const bare = ROWS.filter(([, , by = ""]) => namedTests(by).length === 0 && !/\bnone\b.{0,6}: .{10,}/.test(by));
  expect(bare).toEqual([]);
});

test("every test that the document names exists", () => {
  expect(missingTests(DOCUMENT)).toEqual([]);
});
