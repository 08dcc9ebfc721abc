/** Every export is imported by another module, or is part of a published package. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { expect, test } from "vitest";

const ROOT = join(import.meta.dirname, "..");
const GENERATED = /node_modules|\.next\/|\/out\/|\/dist\//;

const filesIn = (folder: string): string[] =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" })
    .map((name) => join(folder, name))
    .filter((name) => /\.(tsx?|svelte|astro|vue)$/.test(name) && !GENERATED.test(name));

const read = (file: string): string => readFileSync(join(ROOT, file), "utf8");

const IMPORT =
  /(?:^|\n)\s*(?:import|export)\s+(?:type\s+)?([\w$]+\s*,?\s*)?(\{[^}]*\}|\*[\w\s$]*)?\s*from\s+["'](\.[^"']+)["']/g;
const DYNAMIC_IMPORT = /import\(\s*["'`](\.[^"'`]+)["'`]\s*\)/g;
const EXPORT =
  /^export\s+(?:async\s+|abstract\s+|declare\s+)*(?:function\*?|const|let|class|type|interface|enum)\s+([\w$]+)/gm;

/** Returns the exports that a file imports: `src/a.ts#name`, or `src/a.ts#*` for all exports of a module. */
function usesOf(file: string): string[] {
  const text = read(file);
  const from = (specifier = "") => relative(ROOT, join(ROOT, dirname(file), specifier));
  const named = [...text.matchAll(IMPORT)].flatMap(([, , names = "", specifier]) =>
    names.startsWith("{")
      ? names
          .slice(1, -1)
          .split(",")
          .map(
            (name) =>
              `${from(specifier)}#${
                name
                  .trim()
                  .replace(/^type\s+/, "")
                  .split(/\s+as\s+/)[0]
              }`,
          )
      : [`${from(specifier)}#*`],
  );
  return [...named, ...[...text.matchAll(DYNAMIC_IMPORT)].map(([, specifier]) => `${from(specifier)}#*`)];
}

/** Returns the modules that the users of the packages import, and those that the packages' own commands load. */
function entryPoints(): Set<string> {
  const folders = readdirSync(join(ROOT, "src")).filter((name) => name !== "README.md");
  const manifests = folders.map((folder) => join("src", folder, "package.json"));
  return new Set(
    manifests
      .filter((manifest) => existsSync(join(ROOT, manifest)))
      .flatMap((manifest) => {
        const { exports = {}, build } = JSON.parse(read(manifest)) as {
          readonly exports?: Record<string, string | object>;
          readonly build?: { readonly modules?: readonly string[] };
        };
        const modules = Object.values(exports).flatMap((entry) =>
          typeof entry === "string" ? entry : Object.values(entry),
        );
        return [...modules.map((module) => join(dirname(manifest), module)), ...(build?.modules ?? [])];
      }),
  );
}

test("nothing is exported that no other file uses", () => {
  const used = new Set(["src", "test", "deploy", "examples", "gen"].flatMap(filesIn).flatMap(usesOf));
  const entries = entryPoints();
  const unused = filesIn("src")
    .filter((file) => !entries.has(file) && !used.has(`${file}#*`))
    .flatMap((file) => [...read(file).matchAll(EXPORT)].map(([, name]) => `${file}#${name}`))
    .filter((name) => !used.has(name));
  expect(entries.size).toBeGreaterThan(5);
  expect(unused).toEqual([]);
});
