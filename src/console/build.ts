/**
 * Bundles the console's page. The package is built with it; in a clone the page is bundled when it is first asked for, so that
 * there is no step to forget and nothing generated to commit.
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
