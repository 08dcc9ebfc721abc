/** Finds the scripts that npm runs when it installs a package from a registry. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

const INSTALL_SCRIPTS = ["preinstall", "install", "postinstall"];

/** @returns the script that a package would run at its installation; undefined if there is none */
export function installScript(directory: string): string | undefined {
  const { name, scripts = {} } = JSON.parse(readFileSync(join(directory, "package.json"), "utf8")) as {
    readonly name: string;
    readonly scripts?: Readonly<Record<string, string>>;
  };
  const found = INSTALL_SCRIPTS.find((script) => script in scripts);
  if (found !== undefined) return `${name}: ${found}: ${scripts[found]}`;
  // npm compiles a package with this file, unless it has an install script of its own.
  return existsSync(join(directory, "binding.gyp")) ? `${name}: binding.gyp` : undefined;
}
