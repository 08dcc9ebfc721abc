import { readFileSync } from "node:fs";

const SESSION = new URL("../../../src/service/session/", import.meta.url);

/** Returns the text of a module of the domain, with absolute imports, so that the text can be loaded from anywhere. */
export function sourceOf(name: string): string {
  const text = readFileSync(new URL(name, SESSION), "utf8");
  return text.replaceAll(/ from "(\.\/[^"]+)"/g, (_, path: string) => ` from "${new URL(path, SESSION)}"`);
}
