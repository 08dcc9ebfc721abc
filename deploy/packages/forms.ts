/** Makes a built package work in projects of every form, ES modules and CommonJS, and with compilers from TypeScript 5.4 on. */
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";

/** Matches the relative imports of a declaration, which name sources. */
const RELATIVE = /(\b(?:from|import)\s*\(?")(\.[^"]*)\.ts(?=")/g;

/** The form in which a project imports a package. */
export type Module = "esm" | "cjs";

/** Returns the path of the compiled form of a source. */
export const compiledOf = (source: string, module: Module = "esm"): string =>
  source.replace(/\.ts$/, module === "esm" ? ".js" : ".cjs");

/** Returns the path of the declaration of a source. */
export const declarationOf = (source: string, module: Module = "esm"): string =>
  source.replace(/\.ts$/, module === "esm" ? ".d.ts" : ".d.cts");

/**
 * Writes modules for `require`, which load the ES modules: Node can do that from the oldest version that the packages promise. So a process
 * has one copy of a package, in whatever form it is imported.
 *
 * @param entries the paths of the entry points' sources, from the package's directory
 */
export function addCommonJs(directory: string, entries: readonly string[]): void {
  for (const source of entries) {
    const file = compiledOf(source, "cjs");
    writeFileSync(join(directory, file), `module.exports = require("./${basename(compiledOf(source))}");\n`);
  }
}

/**
 * Keeps the declarations that those of the entry points reach, and writes each a second time for projects in CommonJS form, because
 * compilers before TypeScript 5.8 refuse declarations of ES modules there.
 *
 * @param entries the paths of the entry points' sources, from the package's directory
 */
export function finishDeclarations(directory: string, entries: readonly string[]): void {
  const reached = new Set(entries.map((source) => join(source)));
  for (const source of reached) {
    const text = inOldSyntax(readFileSync(join(directory, declarationOf(source)), "utf8"));
    for (const [, , path] of text.matchAll(RELATIVE)) reached.add(join(source, "..", `${path}.ts`));
    writeFileSync(join(directory, declarationOf(source)), text.replaceAll(RELATIVE, "$1$2.js"));
    writeFileSync(join(directory, declarationOf(source, "cjs")), text.replaceAll(RELATIVE, "$1$2.cjs"));
  }
  const kept = new Set([...reached].map((source) => declarationOf(source)));
  for (const file of readdirSync(directory, { recursive: true, encoding: "utf8" })) {
    if (file.endsWith(".d.ts") && !kept.has(file)) rmSync(join(directory, file));
  }
}

/**
 * Returns a declaration without the type arguments of typed arrays, which TypeScript has from 5.7 on. The result of `slice` is the type
 * of bytes that are not shared between threads, where the compiler tells them apart.
 */
const inOldSyntax = (declaration: string) =>
  declaration
    .replaceAll("Uint8Array<ArrayBuffer>", 'ReturnType<Uint8Array["slice"]>')
    .replaceAll("Uint8Array<ArrayBufferLike>", "Uint8Array");
