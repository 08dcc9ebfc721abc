import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { scratch } from "./service.ts";

/** Records which modules a process of Node loads that has this environment. */
export function recordLoads() {
  const directory = scratch();
  const [hooks, list] = [join(directory, "hooks.mjs"), join(directory, "loaded")];
  writeFileSync(
    hooks,
    `import { appendFileSync } from "node:fs";
import { registerHooks } from "node:module";
registerHooks({ load(url, context, next) { appendFileSync(${JSON.stringify(list)}, url + "\\n"); return next(url, context); } });`,
  );
  return {
    env: { NODE_OPTIONS: `--import=${pathToFileURL(hooks)}` },
    /** Returns the URLs of the modules that have been loaded so far. */
    loaded: () => readFileSync(list, "utf8"),
  };
}
