/** Puts the parts of a library that a program uses into the program's package. */
import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

const RELATIVE = /\b(?:from|import)\s*\(?"(\.[^"]*\.js)"/g;

type Library = {
  readonly name: string;
  readonly version: string;
  /** The directory of the built library. */
  readonly directory: string;
  /** The paths of the compiled entry points from there, by their names in `exports`. */
  readonly entries: Readonly<Record<string, string>>;
};

/**
 * Copies the modules of a library that the modules in `directory` reach, below its `node_modules`. What the library declares as its
 * dependencies is left out: the program depends on what the copied modules import, in exactly the versions that it is tested with.
 */
export function bundleLibrary(directory: string, { name, version, directory: from, entries }: Library): void {
  const to = join(directory, "node_modules", name);
  const code = readdirSync(directory, { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".js"))
    .map((file) => readFileSync(join(directory, file), "utf8"))
    .join("\n");
  const used = Object.entries(entries).filter(([path]) => code.includes(`from "${join(name, path)}"`));
  const reached = new Set(used.map(([, file]) => file));
  for (const file of reached) {
    for (const [, path = ""] of readFileSync(join(from, file), "utf8").matchAll(RELATIVE)) {
      reached.add(join(dirname(file), path));
    }
    mkdirSync(dirname(join(to, file)), { recursive: true });
    cpSync(join(from, file), join(to, file));
  }
  cpSync(join(from, "LICENSE"), join(to, "LICENSE"));
  const exports = Object.fromEntries(used.map(([path, file]) => [path, `./${file}`]));
  writeFileSync(join(to, "package.json"), `${JSON.stringify({ name, version, type: "module", exports }, null, 2)}\n`);
}
