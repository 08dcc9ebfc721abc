/**
 * `npm run docs` builds docs/ into dist/site, with search, pictures and pages of the APIs. `npm run docs -- dev` serves it while you write; it
 * reads docs/ once. `npm run docs -- release ../published` adds the site to a published one as the pages of this version. DOCS_BASE is the path
 * under which the site, or the published one, is served; `/` by default.
 */
import { spawnSync } from "node:child_process";
import { copyFileSync, existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { preparePages } from "./pages.ts";
import { addRelease } from "./published.ts";

const SITE = import.meta.dirname;
const BUILT = join(SITE, "../../dist/site");
const LOCK = join(SITE, "package-lock.json");
/** A copy of the lock file that marks a complete installation. */
const INSTALLED = join(SITE, "node_modules/.installed");

function run(program: string, ...args: readonly string[]): void {
  const { status } = spawnSync(program, args, { cwd: SITE, stdio: ["ignore", "inherit", "inherit"] });
  if (status !== 0) process.exit(status ?? 1);
}

if (!existsSync(INSTALLED) || !readFileSync(INSTALLED).equals(readFileSync(LOCK))) {
  run("sh", join(SITE, "../../test/dependencies/npm-ci.sh"), "--ignore-scripts");
  copyFileSync(LOCK, INSTALLED);
}
const { version } = preparePages();
const [command = "build", ...args] = process.argv.slice(2);
const runVitePress = (...words: readonly string[]) =>
  run(process.execPath, join(SITE, "node_modules/vitepress/bin/vitepress.js"), ...words);
const base = process.env.DOCS_BASE ?? "/";
if (command === "release") {
  const [published] = args;
  if (published === undefined) throw new Error("name the directory of the published site");
  runVitePress("build", SITE, "--base", `${base}${version}/`);
  addRelease(BUILT, published, version);
} else {
  runVitePress(command, SITE, "--base", base, ...args);
}
