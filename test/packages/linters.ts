/**
 * The linters of published packages, which run in the process of the test. Their own commands load TypeScript again for every package,
 * which takes twenty times the CPU time of all checks.
 */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const TOOLS = join(import.meta.dirname, "../dependencies/tools/node_modules");

type Publint = {
  publint(options: { pkgDir: string; strict: boolean; pack: false }): Promise<{ messages: readonly object[] }>;
};
type Problem = { readonly kind: string };
type AreTheTypesWrong = {
  Package: new (files: Readonly<Record<string, string>>, name: string, version: string) => object;
  checkPackage(made: object): Promise<{ readonly types: unknown; readonly problems?: readonly Problem[] }>;
};

const load = async <T>(module: string): Promise<T> => import(pathToFileURL(join(TOOLS, module)).href);

/** Returns the errors, warnings and suggestions of publint for a built package. */
export async function lint(directory: string): Promise<readonly object[]> {
  const { publint } = await load<Publint>("publint/src/index-node.js");
  return (await publint({ pkgDir: directory, strict: true, pack: false })).messages;
}

/** Returns what "Are the types wrong?" finds in a built package, in projects of every form. @throws Error if it has no types */
export async function findTypeProblems(directory: string): Promise<readonly Problem[]> {
  const { Package, checkPackage } = await load<AreTheTypesWrong>("@arethetypeswrong/core/dist/index.js");
  const { name, version } = JSON.parse(readFileSync(join(directory, "package.json"), "utf8"));
  const files: Record<string, string> = {};
  for (const file of readdirSync(directory, { recursive: true, encoding: "utf8" })) {
    const path = join(directory, file);
    if (statSync(path).isFile()) files[`/node_modules/${name}/${file}`] = readFileSync(path, "utf8");
  }
  const { types, problems = [] } = await checkPackage(new Package(files, name, version));
  if (types === false) throw new Error(`${name} has no types`);
  return problems;
}
