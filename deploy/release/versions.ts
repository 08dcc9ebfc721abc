/** Sets the common version of everything that is released together: the service and the packages of this tree. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

type Manifest = {
  version: string;
  readonly workspaces?: readonly string[];
  readonly dependencies?: Record<string, string>;
};

const read = (path: string) => JSON.parse(readFileSync(path, "utf8")) as Manifest;
const write = (path: string, manifest: Manifest) => writeFileSync(path, `${JSON.stringify(manifest, null, 2)}\n`);

export const currentVersion = (root: string): string => read(join(root, "package.json")).version;

/** Files that contain the version and are not manifests of npm. */
export const OTHER_FILES = [
  "deploy/helm/session-service/Chart.yaml",
  "docs/tasks/deployment.md",
  "docs/start/getting-started.md",
  "verifiers/python/pyproject.toml",
];

/**
 * Sets the version wherever it is written, except in the lock file and in generated files.
 * @throws Error if the text is not a version, or is not above the current version
 */
export function setVersion(root: string, version: string): void {
  const before = currentVersion(root);
  if (!/^\d+\.\d+\.\d+$/.test(version))
    throw new Error(`${version} is no version: expected three numbers, as in 1.2.3`);
  if (new Intl.Collator("en", { numeric: true }).compare(version, before) <= 0) {
    throw new Error(`${version} is not above ${before}`);
  }
  const manifest = read(join(root, "package.json"));
  for (const workspace of manifest.workspaces ?? []) {
    const path = join(root, workspace, "package.json");
    write(path, { ...read(path), version });
  }
  // The project's own packages on which the service depends have the same version.
  const own = new Set((manifest.workspaces ?? []).map((path) => nameOf(join(root, path))));
  const dependencies = Object.entries(manifest.dependencies ?? {}).map(
    ([name, range]) => [name, own.has(name) ? version : range] as const,
  );
  write(join(root, "package.json"), { ...manifest, version, dependencies: Object.fromEntries(dependencies) });
  for (const file of OTHER_FILES) {
    const path = join(root, file);
    const places = /^((?:appVersion|version): |version = "|.*session-service-)\d+\.\d+\.\d+(?=$|\.tgz|"$)/gm;
    writeFileSync(path, readFileSync(path, "utf8").replace(places, `$1${version}`));
  }
}

/** Adds a version to the table of docs/tasks/upgrade.md, with the schema of "this version". */
export function addSchemaRow(page: string, version: string): string {
  const changed = page.replace(/^\| this version \| (\d+) \|$/m, `| ${version} | $1 |\n$&`);
  if (changed === page) throw new Error('docs/tasks/upgrade.md has no row "this version"');
  return changed;
}

const nameOf = (directory: string) =>
  (JSON.parse(readFileSync(join(directory, "package.json"), "utf8")) as { readonly name: string }).name;
