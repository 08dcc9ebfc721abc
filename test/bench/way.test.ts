import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { expect, test } from "vitest";

/** The longest way of a refresh. Lower these numbers with the code; raise none. */
const LIMITS = {
  redis: { files: 45, functions: 119 },
  embedded: { files: 44, functions: 116 },
} as const;

test.for(["redis", "embedded"] as const)("the way of a refresh on %s does not grow", (store) => {
  const script = join(import.meta.dirname, "way.ts");
  const output = execFileSync(process.execPath, [script, "--store", store, "--json"], { encoding: "utf8" });
  const { files, functions } = JSON.parse(output) as { readonly files: number; readonly functions: number };
  const hint = "`npm run way` prints them";
  expect(files, hint).toBeLessThanOrEqual(LIMITS[store].files);
  expect(functions, hint).toBeLessThanOrEqual(LIMITS[store].functions);
});
