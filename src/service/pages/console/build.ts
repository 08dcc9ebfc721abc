/** Bundles the script of the console's page: when the package is built, or in a clone of the repository at the first request. */
import { join } from "node:path";

const PAGE = join(import.meta.dirname, "page");

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
