/** What both buf plugins share. */
import { readFileSync } from "node:fs";

/** The manifest at the root: of this repository, or of the published package. */
const MANIFEST = new URL("../../package.json", import.meta.url);

/** The version of the plugins, as buf shows it and generated files name it: that of the package. */
export const PLUGIN_VERSION = `v${(JSON.parse(readFileSync(MANIFEST, "utf8")) as { version: string }).version}`;

/** @throws Error for a value of an option that is neither true nor false */
export function parseBoolean(option: string, value: string): boolean {
  if (value !== "true" && value !== "false") throw new Error(`option "${option}=${value}": expected true or false`);
  return value === "true";
}
