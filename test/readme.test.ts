/** What README.md says in its tables is what the code does, in both directions. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { getOption } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { SessionService } from "../gen/auth/v1/session_pb.ts";
import { http } from "../gen/google/api/annotations_pb.ts";
import { configVariables, readConfig } from "../src/config/config.ts";
import { ERRORS } from "../src/session/errors.ts";

const ROOT = join(import.meta.dirname, "..");
const read = (name: string) => readFileSync(join(ROOT, name), "utf8");
const README = read("README.md");

/** The rows of the table below a heading of a page, as their cells. */
function tableOf(page: string, heading: string): string[][] {
  const section = page.split(/^#{2,3} /m).find((part) => part.startsWith(`${heading}\n`)) ?? "";
  const rows = section.split("\n").filter((line) => line.startsWith("| `"));
  return rows.map((row) =>
    row
      .slice(1, -1)
      .split("|")
      .map((cell) => cell.trim()),
  );
}
const table = (heading: string) => tableOf(README, heading);
const unquoted = (cell = "") => /^`([^`]*)`$/.exec(cell)?.[1];

test("the error table is the closed table of the code", () => {
  const rows = table("Errors").map(([code, status, rpc]) => [unquoted(code), { http: Number(status), rpc }]);
  const codes = Object.entries(ERRORS).map(([code, { http: status, rpc }]) => [code, { http: status, rpc }]);
  expect(Object.fromEntries(rows)).toEqual(Object.fromEntries(codes));
  expect(rows).toHaveLength(codes.length);
});

describe("the configuration table", () => {
  const rows = tableOf(read("docs/configuration.md"), "Variables").map(
    ([name, byDefault = ""]) => [unquoted(name) ?? "", byDefault] as const,
  );
  const known = configVariables();

  test("has every variable that is read, and no other", () => {
    expect(rows.map(([name]) => name).sort()).toEqual([...known.keys()].sort());
  });

  test("of the README is a part of it", () => {
    const short = tableOf(README, "Configuration").map(([name, byDefault = ""]) => [unquoted(name), byDefault]);
    expect(short.length).toBeGreaterThan(5);
    expect(rows).toEqual(expect.arrayContaining(short));
  });

  const stated = rows.filter(([, byDefault]) => unquoted(byDefault) !== undefined);
  // Their defaults follow from other variables: config.test.ts and the tests of the listeners hold them.
  const derived = ["KEYS_FILE", "ISSUER", "AUDIENCE"];
  test.each(stated.filter(([name]) => !derived.includes(name)))("%s is %s by default", (name, byDefault) => {
    const value = unquoted(byDefault) ?? "";
    expect(value).not.toBe("");
    const config = readConfig({ [name]: value });
    // The cookie's own path is chosen by its name when none is set.
    const path = name === "COOKIE_PATH" ? { cookie: { ...readConfig({}).cookie, path: value } } : {};
    expect(config).toEqual({ ...readConfig({}), ...path });
  });

  test("leaves the default empty where there is none", () => {
    const empty = rows.filter(([, byDefault]) => byDefault === "").map(([name]) => name);
    for (const name of empty) expect(known.get(name) ?? [], name).toEqual([]);
    expect(empty).toContain("REDIS_URL");
  });
});

test("the routes are those of the contract", () => {
  const rows = table("Use").map(([route, rpc]) => `${unquoted(route)} ${unquoted(rpc)}`);
  const routes = SessionService.methods.map((method) => {
    const { pattern } = getOption(method, http);
    return `${pattern.case?.toUpperCase()} ${pattern.value} ${method.name}`;
  });
  expect(rows.sort()).toEqual(routes.sort());
});

test("the rooms are there", () => {
  const paths = table("Rooms").flatMap(([where = ""]) =>
    [...where.matchAll(/`([^`]+)`/g)].map(([, path]) => path ?? ""),
  );
  expect(paths.length).toBeGreaterThan(10);
  expect(paths.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
});

test("every npm command that is named exists", () => {
  const scripts = Object.keys(JSON.parse(read("package.json")).scripts);
  const texts = [README, read("src/tokens/ring-file.ts"), read("src/cli/keys.ts"), read(".ci/run")];
  const named = texts.flatMap((text) =>
    [...text.matchAll(/\bnpm (?:run ([\w:]+)|(start|test))\b/g)].map((m) => m[1] ?? m[2]),
  );
  expect(named).toEqual(expect.arrayContaining(["start", "test", "keys", "generate"]));
  expect(named.filter((name) => !scripts.includes(name ?? ""))).toEqual([]);
});
