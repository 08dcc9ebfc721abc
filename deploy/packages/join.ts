/**
 * Joins the compiled modules of the service, and those of libraries that it uses throughout, into a few files:
 * `node join.ts <package> <library>…`.
 * Loading six hundred modules one by one takes 12 MiB of memory and a third of the processor time of a start.
 *
 * A module that finds files beside itself (`import.meta`) stays as it is. It must import none of the service's modules: it would load
 * them a second time.
 */
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type OutputAsset, type OutputChunk, rolldown } from "rolldown";

/** The modules in `src` that the command loads (src/service/bin). */
const ENTRIES = ["service/main", "platform/runtime/code-cache"];

async function joinModules(directory: string, libraries: readonly string[]): Promise<void> {
  const modules = ["src", "gen"].flatMap((folder) =>
    readdirSync(join(directory, folder), { recursive: true, encoding: "utf8" })
      .filter(
        (file) =>
          file.endsWith(".js") && !file.includes("/page/") && !file.startsWith("service/pages/reference/swagger-ui/"),
      )
      .map((file) => join(directory, folder, file)),
  );
  const entries = new Map(ENTRIES.map((entry) => [entry, join(directory, "src", `${entry}.js`)]));
  const finds = (file: string) => readFileSync(file, "utf8").includes("import.meta");
  const staying = new Set(modules.filter((file) => finds(file) && ![...entries.values()].includes(file)));
  for (const file of staying) {
    if (/^import .* from "\.\.?\//m.test(readFileSync(file, "utf8"))) throw new Error(`${file} imports others of ours`);
  }
  const isJoined = (name: string) => libraries.some((library) => name === library || name.startsWith(`${library}/`));
  const program = await rolldown({
    input: Object.fromEntries(entries),
    platform: "node",
    external: (name) => staying.has(name) || (!/^[./]/.test(name) && !isJoined(name)),
  });
  const { output } = await program.generate({
    ...{ format: "cjs", dynamicImportInCjs: false },
    entryFileNames: "[name].cjs",
    chunkFileNames: "service/[name]-[hash].cjs",
    comments: { legal: false, annotation: false, jsdoc: false },
  });
  await program.close();
  for (const file of modules) {
    if (staying.has(file)) writeFileSync(file, builtInsWhole(readFileSync(file, "utf8")));
    else rmSync(file);
  }
  for (const file of output) {
    // `bin` has the first line of a command.
    if (file.type === "chunk")
      writeFileSync(join(directory, "src", file.fileName), inAscii(file.code.replace(/^#!.*\n/, "")));
  }
  writeFileSync(join(directory, "NOTICE"), notice(output));
}

/**
 * Escapes all characters outside ASCII, because V8 stores a source with two bytes for each character as soon as one character is outside
 * Latin-1.
 */
const inAscii = (code: string) =>
  code.replace(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);

/**
 * Takes modules of Node whole instead of importing names from them. An import reads all exports of such a module, and for some of them Node
 * loads more modules: for those of `node:http` its implementation of fetch.
 */
function builtInsWhole(code: string): string {
  const whole = code
    .replace(/^import \* as (.+) from "(node:.+)";$/gm, 'const $1 = process.getBuiltinModule("$2");')
    .replace(/^import (\{(?!.*\bdefault\b)[^}]+\}) from "(node:.+)";$/gm, (_, names: string, module: string) => {
      return `const ${names.replaceAll(" as ", ": ")} = process.getBuiltinModule("${module}");`;
    });
  if (/\bfrom "node:|^import "node:/m.test(whole)) throw new Error("an import of a module of Node has an unknown form");
  return whole;
}

/** Returns the licenses of the joined libraries, or else the copyright notices at the head of their modules; each once. */
function notice(output: readonly (OutputChunk | OutputAsset)[]): string {
  const texts = output
    .flatMap((file) => (file.type === "chunk" ? file.moduleIds : []))
    .flatMap((file) => {
      const [, library, name] = /^(.*\/node_modules\/((?:@[^/]+\/)?[^/]+))\//.exec(file) ?? [];
      if (library === undefined) return [];
      const license = join(library, "LICENSE");
      const head = () => /^(?:\/\/.*\n)*/.exec(readFileSync(file, "utf8"))?.[0].replace(/^\/\/ ?/gm, "") ?? "";
      return [`${name}\n\n${existsSync(license) ? readFileSync(license, "utf8") : head()}`];
    });
  const unique = [...new Set(texts)].filter((text) => /copyright/i.test(text));
  return `This package contains code of these libraries.\n\n${unique.join("\n\n----\n\n")}`;
}

const [directory = "", ...libraries] = process.argv.slice(2);
await joinModules(directory, libraries);
