/** The files of lua/, which this module finds beside itself. So it stays a file of its own in the package, and imports none of ours. */
import { readdirSync, readFileSync } from "node:fs";

const LUA = new URL("./lua/", import.meta.url);

/** Returns the names of the scripts, which are the files of lua/ itself, without their endings. */
export const scriptNames = (): string[] => readdirSync(LUA).flatMap((file) => /^(\w+)\.lua$/.exec(file)?.[1] ?? []);

/** @param name of a file in lua/, without its ending */
export function readLua(name: string): string {
  return readFileSync(new URL(`${name}.lua`, LUA), "utf8");
}
