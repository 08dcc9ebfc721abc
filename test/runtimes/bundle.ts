import { join } from "node:path";
import { rolldown } from "rolldown";

/**
 * Bundles a module of this directory for a runtime that loads one file. @param conditions the conditions of `exports` that the runtime
 * uses
 */
export async function bundle(
  entry: string,
  conditions: readonly string[],
): Promise<{ code: string; imports: string[] }> {
  const build = await rolldown({
    input: join(import.meta.dirname, entry),
    platform: "neutral",
    resolve: { mainFields: ["module", "main"], conditionNames: [...conditions, "import", "default"] },
    external: /^node:/,
  });
  try {
    const { output } = await build.generate({ format: "esm", codeSplitting: false });
    return { code: output[0].code, imports: output[0].imports };
  } finally {
    await build.close();
  }
}
