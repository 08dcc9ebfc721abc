import { readFileSync } from "node:fs";

const SESSION = new URL("../../../src/service/session/", import.meta.url);

/** Returns the text of a module of the domain, such as `rotation/rotation.ts`, with absolute imports, so that the text can be loaded from anywhere. */
export function sourceOf(name: string): string {
  const module = new URL(name, SESSION);
  return readFileSync(module, "utf8").replaceAll(
    / from "(\.\.?\/[^"]+)"/g,
    (_, path: string) => ` from "${new URL(path, module)}"`,
  );
}
