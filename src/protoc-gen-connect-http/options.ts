/** The options and the version that all buf plugins of this project share. */
import { readFileSync } from "node:fs";

/** The package.json at the root of this repository, or of the published package. */
const MANIFEST = new URL("../../package.json", import.meta.url);

/** The version of the plugins, which is that of the package. buf displays it, and generated files contain it. */
export const PLUGIN_VERSION = `v${(JSON.parse(readFileSync(MANIFEST, "utf8")) as { version: string }).version}`;

/** @throws Error if the value of an option is neither true nor false */
export function parseBoolean(option: string, value: string): boolean {
  if (value !== "true" && value !== "false") throw new Error(`option "${option}=${value}": expected true or false`);
  return value === "true";
}
