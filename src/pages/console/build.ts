/**
 * Bundles the console's page. When the package is built, this happens once. In a clone of the repository the page is bundled when it is
 * first requested, so that nobody has to remember a step or commit a generated file.
 */
import { join } from "node:path";

const PAGE = join(import.meta.dirname, "page");

/** @returns the script of the page */
export async function buildConsolePage(): Promise<string> {
  const { rolldown } = await import("rolldown");
  const build = await rolldown({
    input: join(PAGE, "main.tsx"),
    platform: "browser",
    tsconfig: join(PAGE, "tsconfig.json"),
  });
  try {
    const { output } = await build.generate({ format: "esm", minify: true });
    return output[0].code;
  } finally {
    await build.close();
  }
}
