/**
 * `npm run docs` builds docs/ into dist/site, with search, pictures and pages of the APIs. `npm run docs -- dev` serves it while you write; it
 * reads docs/ once. DOCS_BASE is the path under which the site is served, such as `/0.2.0/` for the pages of a release; `/` by default.
 */
import { spawnSync } from "node:child_process";
import { copyFileSync, existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { preparePages } from "./pages.ts";

const SITE = import.meta.dirname;
const LOCK = join(SITE, "package-lock.json");
/** A copy of the lock file that marks a complete installation. */
const INSTALLED = join(SITE, "node_modules/.installed");

function run(program: string, ...args: readonly string[]): void {
  const { status } = spawnSync(program, args, { cwd: SITE, stdio: ["ignore", "inherit", "inherit"] });
  if (status !== 0) process.exit(status ?? 1);
}

if (!existsSync(INSTALLED) || !readFileSync(INSTALLED).equals(readFileSync(LOCK))) {
  run("sh", join(SITE, "../../test/tools/npm-ci.sh"), "--ignore-scripts");
  copyFileSync(LOCK, INSTALLED);
}
preparePages();
const [command = "build", ...args] = process.argv.slice(2);
run(process.execPath, join(SITE, "node_modules/vitepress/bin/vitepress.js"), command, SITE, ...args);
