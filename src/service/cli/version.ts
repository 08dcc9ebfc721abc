/** This is a module of its own, because the package builder (join.ts) cannot join modules that use `import.meta`. */
import { readFileSync } from "node:fs";

export function version(): string {
  return JSON.parse(readFileSync(new URL("../../../package.json", import.meta.url), "utf8")).version;
}
