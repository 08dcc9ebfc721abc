import { globSync } from "node:fs";
import { join } from "node:path";

/** Returns the path of a runtime that test/setup.sh has installed. @param pattern a glob relative to test/runtimes/node_modules */
export function programOf(pattern: string): string {
  const [program] = globSync(join(import.meta.dirname, "node_modules", pattern));
  if (program === undefined) throw new Error(`no ${pattern}: run test/setup.sh`);
  return program;
}
