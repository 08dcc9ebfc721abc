/** The entry points of a package: as its manifest in the tree names them, and as the published one does. */
import { compiledOf, declarationOf, type Module } from "./forms.ts";

/** An entry point names one module, or one for each condition. All of them have the same types, which are those for Node. */
export type Entry = string | { readonly node: string; readonly [condition: string]: string };

/** Returns the sources of an entry point by their conditions. */
export const conditionsOf = (entry: Entry): Readonly<Record<string, string>> =>
  typeof entry === "string" ? { default: entry } : entry;

/** Returns the source that has the types for all conditions of an entry point. */
export const typedSource = (entry: Entry): string => (typeof entry === "string" ? entry : entry.node);

/** Returns the fields of the published manifest that name the compiled files of all entry points. */
export function publishEntryPoints(entries: Readonly<Record<string, Entry>>): object {
  const exports = Object.entries(entries).map(([path, entry]) => [path, publishEntry(entry)]);
  return { exports: Object.fromEntries(exports), ...nameMain(entries) };
}

/** Returns an entry point as the published manifest names it: with compiled files in place of sources, for both forms of projects. */
function publishEntry(entry: Entry): object {
  const filesIn = (module: Module) => ({
    types: `./${declarationOf(typedSource(entry), module)}`,
    ...Object.fromEntries(
      Object.entries(conditionsOf(entry)).map(([condition, source]) => [condition, `./${compiledOf(source, module)}`]),
    ),
  });
  return { require: filesIn("cjs"), default: filesIn("esm") };
}

/** Returns the fields for what does not read `exports`: the main module for Parcel, the declarations for `moduleResolution: node10`. */
function nameMain(entries: Readonly<Record<string, Entry>>): object {
  const main = entries["."];
  const files = Object.entries(entries).map(
    ([path, entry]) => [path, declarationOf(typedSource(entry), "cjs")] as const,
  );
  const below = files.filter(([path]) => path !== ".").map(([path, file]) => [path.replace("./", ""), [file]]);
  return {
    ...(main !== undefined && { main: compiledOf(typedSource(main), "cjs") }),
    types: files.find(([path]) => path === ".")?.[1],
    ...(below.length > 0 && { typesVersions: { "*": Object.fromEntries(below) } }),
  };
}
