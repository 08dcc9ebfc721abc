/** docs/reference/events.md names every event and metric of the source, and effects.md the test of each, which exists. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { missingTests, namedTests, tableRows } from "../../support/named-tests.ts";

const ROOT = join(import.meta.dirname, "../../..");
const DOCUMENT = readFileSync(join(ROOT, "docs/reference/events.md"), "utf8");
const TESTS = readFileSync(join(import.meta.dirname, "effects.md"), "utf8");
const sources = readdirSync(join(ROOT, "src"), { recursive: true, encoding: "utf8" })
  // Two kinds of sources are left out: packages that other programs import, which use the log of those programs, and commands, which write
  // to standard output.
  .filter((name) => /^(service\/(?!cli\/)|platform\/).*\.ts$/.test(name))
  // The line with the event `ready` is left out, because the service writes it to standard output, not to the log.
  .map((name) => readFileSync(join(ROOT, "src", name), "utf8").replaceAll('event: "ready"', ""))
  .join("\n");
const found = (pattern: RegExp) => [...new Set([...sources.matchAll(pattern)].map(([, name]) => name ?? ""))].sort();
const named = (heading: string) =>
  tableRows(DOCUMENT, heading)
    .map(([name = ""]) => name.replaceAll("`", ""))
    .sort();

test("every event of the source is documented, and no other", () => {
  expect(named("Log")).toEqual(found(/\bevent: "([a-z_]+)"/g));
});

test("every metric of the source is documented, and no other", () => {
  expect(named("Metrics")).toEqual(
    found(
      /"(session_(?:unready|[a-z_]+(?:_total|_seconds|_streams|_waiting|_sessions|_connections|_watchers|_entries|_info|_subscriptions|_given_up)))"/g,
    ),
  );
});

test("every line of the log names its event", () => {
  const calls = sources.matchAll(/\blog(?:\.(?:debug|info|warn|error|fatal)|\[[a-z]+\])\(\s*(.{0,40})/g);
  const nameless = [...calls].map(([, start = ""]) => start).filter((start) => !/^\{ (event:|\.\.\.event)/.test(start));
  expect(nameless).toEqual([]);
});

test("every effect has a test, and each of them exists", () => {
  for (const heading of ["Log", "Metrics", "Durability"]) {
    const rows = tableRows(TESTS, heading);
    // The steps of durability are not seen from outside, so the page does not have them.
    if (heading !== "Durability")
      expect(rows.map(([effect]) => effect)).toEqual(tableRows(DOCUMENT, heading).map(([effect]) => effect));
    expect(rows.length).toBeGreaterThan(5);
    for (const [effect, tests = ""] of rows) expect(namedTests(tests), effect).not.toEqual([]);
  }
  expect(missingTests(TESTS)).toEqual([]);
});
