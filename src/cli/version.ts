/** The version. The code has its own module, because the package builder cannot join modules that use `import.meta` (join.ts). */
import { readFileSync } from "node:fs";

/** Returns the version of the package, whose manifest lies beside the sources. */
export function version(): string {
  return JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")).version;
}
