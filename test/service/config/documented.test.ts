/** Reads the configurations in the documentation, the manifests and the examples. The service must know every variable, and warn of none. */
import { globSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { configVariables } from "../../../src/service/config/config.ts";
import { examineConfig } from "../../../src/service/config/findings.ts";
import { scratch } from "../../support/service.ts";

type Variables = Readonly<Record<string, string>>;

const KNOWN = configVariables();
const read = (path: string) => readFileSync(path, "utf8");

/** Returns the assignments of variables in a text. Placeholders and expressions of a shell are no values. */
function assignments(text: string): Variables {
  const found = text.matchAll(/(?<![\w$.-])([A-Z][A-Z0-9_]*)=([^\s"'`,;]+|"[^"]*"|'[^']*')/g);
  const pairs = [...found].map(([, name = "", value = ""]) => [name, value.replace(/^(["'])(.*)\1$/, "$2")] as const);
  return Object.fromEntries(pairs.filter(([name, value]) => KNOWN.has(name) && !/[$<>…{}%|]/.test(value)));
}

const FILE = join(scratch(), "file");
writeFileSync(FILE, "what a file with one setting may contain\n");

/** Replaces the files by one that exists. */
const withFiles = (env: Variables) =>
  Object.fromEntries(Object.entries(env).map(([name, value]) => [name, name.endsWith("_FILE") ? FILE : value]));

/** Returns the blocks of code and the comments of a file that set variables of the service, each with its place. */
function documented(path: string): [place: string, env: Variables][] {
  const blocks = path.endsWith(".md")
    ? [...read(path).matchAll(/^```\w*\n(.*?)^```/gms)].map(([, block = ""]) => block.replace(/^\s*#.*$/gm, ""))
    : read(path)
        .split("\n")
        .filter((line) => line.includes("The service's environment:"));
  return blocks.map((block, index): [string, Variables] => [`${path}, ${index + 1}`, assignments(block)]);
}

const COMPOSE: Variables = parse(read("deploy/container/compose.yaml")).services["session-service"].environment;
const HELM: Variables = parse(read("deploy/helm/session-service/values.yaml")).config;

const PLACES = [
  // command-line.md holds the help of the commands, which mentions settings in sentences.
  ...globSync("docs/*/*.md", { exclude: ["docs/reference/command-line.md"] }).flatMap(documented),
  ...documented("README.md"),
  ...globSync("examples/{caddy,haproxy,nginx}/*").flatMap(documented),
  ["kustomization", assignments(read("deploy/kubernetes/base/session-service.env"))],
  ["Helm", { ...HELM, ISSUER: "https://app.example.com" }],
  ["unit of systemd", assignments(read("deploy/systemd/session-service.service"))],
].filter(([, env]) => Object.keys(env ?? {}).length > 0) as [string, Variables][];

test.each(PLACES)("%s: no warning", (_, env) => {
  const { faults, findings } = examineConfig(withFiles(env));
  expect([...faults, ...findings]).toEqual([]);
});

test("configurations are found in the pages", () => {
  expect(PLACES.length).toBeGreaterThan(8);
});

test("manifests name no variable that the service does not know", () => {
  const kustomization = read("deploy/kubernetes/base/session-service.env").matchAll(/^(\w+)=/gm);
  const names = [...Object.keys(COMPOSE), ...Object.keys(HELM), ...[...kustomization].map(([, name = ""]) => name)];
  expect(names.filter((name) => !KNOWN.has(name))).toEqual([]);
});
