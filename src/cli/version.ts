/** The version. It stays in a file of its own, because the package builder joins no module that finds files beside itself. */
import { readFileSync } from "node:fs";

/** Returns the version of the package, whose manifest lies beside the sources. */
export function version(): string {
  return JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")).version;
}
