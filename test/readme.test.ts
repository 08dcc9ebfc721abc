/** The tables, links, paths and commands of the documentation match the code. Tables are checked in both directions. */
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { getOption } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { packageDirectory, packageNames, readManifest } from "../deploy/packages/build.ts";
import { RevocationReasonSchema } from "../gen/auth/admin/v1/session_admin_pb.ts";
import { SessionService } from "../gen/auth/v1/session_pb.ts";
import { http } from "../gen/google/api/annotations_pb.ts";
import type { Finding } from "../src/service/cli/doctor/finding.ts";
import { configVariables, readConfig } from "../src/service/config/config.ts";
import { ERRORS } from "../src/service/session/errors.ts";
import { missingTests } from "./support/named-tests.ts";

const ROOT = join(import.meta.dirname, "..");
const read = (name: string) => readFileSync(join(ROOT, name), "utf8");
const README = read("README.md");
/** The kinds of page: one path to begin with, what somebody wants to do, what is looked up, and why it can be trusted. */
const KINDS = ["docs/start", "docs/tasks", "docs/reference", "docs/why"];
/** The documentation pages, by their paths from the root of the repository. */
const PAGES = new Map(
  ["", "docs", ...KINDS, ...packageNames().map((name) => relative(ROOT, packageDirectory(name)))]
    .flatMap((folder) => readdirSync(join(ROOT, folder)).map((name) => join(folder, name)))
    .filter((name) => name.endsWith(".md"))
    .map((name) => [name, read(name)]),
);

/** Returns the rows of the table below a heading of a page, as their cells. */
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
const unquoted = (cell = "") => /^`([^`]*)`$/.exec(cell)?.[1];

test("the error table is the closed table of the code", () => {
  const rows = tableOf(read("docs/reference/errors.md"), "Codes").map(([code, status, rpc]) => [
    unquoted(code),
    { http: Number(status), rpc },
  ]);
  const codes = Object.entries(ERRORS).map(([code, { http: status, rpc }]) => [code, { http: status, rpc }]);
  expect(Object.fromEntries(rows)).toEqual(Object.fromEntries(codes));
  expect(rows).toHaveLength(codes.length);
});

describe("the configuration table", () => {
  const rows = tableOf(read("docs/reference/configuration.md"), "Variables").map(
    ([name, byDefault = ""]) => [unquoted(name) ?? "", byDefault] as const,
  );
  const known = configVariables();

  test("has every variable that is read, and no other", () => {
    expect(rows.map(([name]) => name).sort()).toEqual([...known.keys()].sort());
  });

  const stated = rows.filter(([, byDefault]) => unquoted(byDefault) !== undefined);
  // The defaults of these variables depend on others, or on the key ring. config.test.ts and the tests of the listeners and keys check them.
  const derived = ["KEYS_FILE", "ISSUER", "AUDIENCE", "SIGNING_ALGORITHM"];
  test.each(stated.filter(([name]) => !derived.includes(name)))("%s is %s by default", (name, byDefault) => {
    const value = unquoted(byDefault) ?? "";
    expect(value).not.toBe("");
    const config = readConfig({ [name]: value });
    // Without COOKIE_PATH the path of the cookie follows from its name, and the configuration has no `path`. So `path` is expected only if
    // the variable is set.
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
  const rows = tableOf(read("docs/reference/routes.md"), "Routes").map(
    ([route, rpc]) => `${unquoted(route)} ${unquoted(rpc)}`,
  );
  const routes = SessionService.methods.map((method) => {
    const { pattern } = getOption(method, http);
    return `${pattern.case?.toUpperCase()} ${pattern.value} ${method.name}`;
  });
  expect(rows.sort()).toEqual(routes.sort());
});

test("the tables of the architecture have every folder of the service, and of src/ that is not named as a package", () => {
  const page = read("docs/why/architecture.md");
  const foldersOf = (parent: string) =>
    readdirSync(join(ROOT, parent), { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => `${parent}/${name}/`);
  const where = (heading: string) => tableOf(page, heading).map(([cell]) => unquoted(cell) ?? "");
  const packages = packageNames().map((folder) => readManifest(folder).name.replace(/^.*\//, ""));
  const named = ["src/service/", ...packages.map((name) => `src/${name}/`)];
  expect(packages).toContain("session-service");
  expect(where("Packages").filter((path) => path.startsWith("src/"))).toEqual(
    foldersOf("src").filter((path) => !named.includes(path)),
  );
  const folders = foldersOf("src/service").filter((path) => path !== "src/service/bin/");
  expect(where("Folders of the service").toSorted()).toEqual(folders);
});

test("the README is short, and its lines are readable", () => {
  const lines = README.split("\n");
  expect(lines.length).toBeLessThanOrEqual(90);
  expect(lines.filter((line) => line.length > 140 && !line.startsWith("|"))).toEqual([]);
});

/** Returns how many words a text has. Signs alone, such as those of tables, are no words. */
const wordsOf = (text: string) => text.split(/\s+/).filter((part) => /[\p{L}\p{N}]/u.test(part)).length;

test("the pages stay readable: a limit for all of them, and for each cell of a table", () => {
  const pages = [...PAGES].filter(([path]) => path.startsWith("docs/"));
  // These limits are not raised: what is new on a page takes the place of something else.
  expect(pages.reduce((sum, [, text]) => sum + wordsOf(text), 0)).toBeLessThanOrEqual(45_000);
  const cells = pages.flatMap(([path, text]) =>
    [...text.replaceAll(/^```.*?^```/gms, "").matchAll(/^\| (.*) \|$/gm)].flatMap(([, row = ""]) =>
      row.split(" | ").map((cell) => `${wordsOf(cell)} words in ${path}: ${cell.slice(0, 80)}`),
    ),
  );
  expect(cells.filter((cell) => Number.parseInt(cell, 10) > 20)).toEqual([]);
});

test("the list of pages names each page once", () => {
  const named = [...read("docs/README.md").matchAll(/\]\(([^)]+)\)/g)].map(([, path]) => `docs/${path}`);
  const pages = [...PAGES.keys()].filter((path) => path.startsWith("docs/") && path !== "docs/README.md");
  expect(named.toSorted()).toEqual(pages.sort());
});

test("the README's table of packages is what is published", () => {
  const named = tableOf(README, "Packages").map(([name]) => unquoted(name));
  expect(named.toSorted()).toEqual(
    packageNames()
      .map((folder) => readManifest(folder).name)
      .sort(),
  );
});

test("the page of symptoms has every reason for which a session ends", () => {
  const rows = [...read("docs/tasks/symptoms.md").matchAll(/^\| (`[^|]*`) \|/gm)].map(([, cell = ""]) => cell);
  const named = rows.flatMap((cell) => [...cell.matchAll(/`(\w+)`/g)].map(([, reason]) => reason));
  const known = RevocationReasonSchema.values.map(({ name }) => name.replace("REVOCATION_REASON_", "").toLowerCase());
  expect(named.filter((name) => known.includes(name ?? "")).toSorted()).toEqual(
    known.filter((name) => name !== "unspecified").sort(),
  );
});

/** What `doctor` examines. A finding of the configuration, which the start logs as `config_warning`, is about one of these as well. */
const CHECKS: Readonly<Record<Finding["check"], true>> = {
  configuration: true,
  files: true,
  keys: true,
  "admin tokens": true,
  certificate: true,
  browsers: true,
  redis: true,
  "embedded store": true,
  service: true,
};

test.each([
  ["An error code", Object.keys(ERRORS)],
  ["A finding of doctor, or `config_warning`", Object.keys(CHECKS)],
])("the page of symptoms has a row for each: %s", (heading, known) => {
  const rows = tableOf(read("docs/tasks/symptoms.md"), heading).map(([cell]) => unquoted(cell));
  expect(rows.toSorted()).toEqual(known.toSorted());
});

/** Returns the anchors of a page, as GitHub makes them from its headings. */
function anchorsOf(text: string): string[] {
  const headings = [...text.replaceAll(/^```.*?^```/gms, "").matchAll(/^#{1,6} (.+)$/gm)];
  return headings.map(([, title = ""]) =>
    title
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
      .replaceAll(" ", "-"),
  );
}

test("every relative link leads to a file, and every anchor to a heading", () => {
  const broken = [...PAGES].flatMap(([path, text]) =>
    [...text.matchAll(/\]\((?!https?:)([^)#\s]*)(?:#([^)\s]*))?\)/g)]
      .map(([link, file = "", anchor]) => ({ link, target: file === "" ? path : join(dirname(path), file), anchor }))
      .filter(({ target, anchor }) => {
        if (!existsSync(join(ROOT, target))) return true;
        return anchor !== undefined && !anchorsOf(read(target)).includes(anchor);
      })
      .map(({ link }) => `${path}: ${link}`),
  );
  expect(broken).toEqual([]);
});

test("every file of this repository that is named exists", () => {
  const missing = [...PAGES].flatMap(([page, text]) =>
    [...text.matchAll(/`((?:src|test|proto|gen|docs|deploy|examples)\/[\w./-]*)`/g)]
      .map(([, path = ""]) => path)
      .filter((path) => !existsSync(join(ROOT, path)))
      .map((path) => `${page}: ${path}`),
  );
  expect(missing).toEqual([]);
});

test("every file that the way through the sources names exists", () => {
  const [steps = "", questions = ""] = read("src/README.md").split("**How is a refresh decided?**");
  const pathsIn = (text: string) => [...text.matchAll(/`([\w.-]+\/[\w./-]*)`/g)].map(([, path = ""]) => path);
  const [first, others] = [pathsIn(steps), pathsIn(questions)];
  expect([first.length > 15, others.length > 15]).toEqual([true, true]);
  const exists = (path: string) => existsSync(join(ROOT, /^(?:gen|test)\//.test(path) ? "" : "src", path));
  expect([...first, ...others].filter((path) => !exists(path))).toEqual([]);
});

test.each(["src/README.md", "CONTRIBUTING.md"])("every file and name of the code that %s has exists", (page) => {
  const git = (...args: string[]) => execFileSync("git", args, { cwd: ROOT, encoding: "utf8", maxBuffer: 2 ** 26 });
  const quoted = [
    ...read(page)
      .replaceAll(/^```.*?^```/gms, "")
      .matchAll(/`([\w./-]+)`/g),
  ].map(([, name = ""]) => name);
  const paths = quoted.filter((name) => /^[\w/-]*[\w-](?:\.test)?\.(?:ts|lua|md|json|proto)$/.test(name));
  const names = quoted.filter((name) => /^[A-Za-z]\w+$/.test(name));
  expect([paths.length > 5, names.length > 0]).toEqual([true, true]);

  const files = git("ls-files", "-co", "--exclude-standard").split("\n");
  expect(paths.filter((path) => !files.some((file) => `/${file}`.endsWith(`/${path}`)))).toEqual([]);
  const patterns = names.flatMap((name) => ["-e", name]);
  const found = new Set(git("grep", "-ohwF", ...patterns, "--", "src", "proto", "test", ":!*.md").split("\n"));
  expect(names.filter((name) => !found.has(name))).toEqual([]);
});

test("every test that is named exists", () => {
  expect([...PAGES.values()].flatMap(missingTests)).toEqual([]);
});

test("every metric that is named exists", () => {
  const known = read("docs/reference/events.md");
  const named = [...PAGES.values()].flatMap((text) => [...text.matchAll(/`(session_\w+_total|session_open_\w+)\b/g)]);
  expect(named.length).toBeGreaterThan(10);
  expect(named.map(([, name]) => name ?? "").filter((name) => !known.includes(`| \`${name}\` |`))).toEqual([]);
});

test("every npm command that is named exists", () => {
  const scripts = Object.keys(JSON.parse(read("package.json")).scripts);
  const workflows = readdirSync(join(ROOT, ".github/workflows")).map((file) => join(".github/workflows", file));
  const sources = ["src/service/tokens/ring-file.ts", ".ci/run", ".ci/packages", ...workflows].map(read);
  const named = [...PAGES.values(), ...sources].flatMap((text) =>
    [...text.matchAll(/\bnpm (?:run ([\w:-]+)|(start|test))\b/g)].map((m) => m[1] ?? m[2]),
  );
  expect(named).toEqual(expect.arrayContaining(["start", "test", "keys", "generate"]));
  expect(named.filter((name) => !scripts.includes(name ?? ""))).toEqual([]);
});

test("the README promises the Node versions of the manifests", () => {
  const engineOf = (manifest: string) => (JSON.parse(read(manifest)).engines.node as string).replace(">=", "");
  const published = packageNames().map((folder) => readManifest(folder).engines.node.replace(">=", ""));
  expect(README).toContain(`Node ${engineOf("package.json")} or newer`);
  for (const version of published)
    expect(README.replaceAll("\n", " ")).toContain(`packages run on Node ${version} and newer`);
});
