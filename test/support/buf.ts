/** The program `buf`, without the Node script by which its package starts it: the script takes more CPU time than most calls. */
import { readdirSync } from "node:fs";
import { join } from "node:path";

const PACKAGES = join(import.meta.dirname, "../../node_modules/@bufbuild");
/** npm installs the program of this platform alone, as a package with the name of the platform. */
const ofPlatform = readdirSync(PACKAGES).find((name) => name.startsWith("buf-"));

export const BUF = join(PACKAGES, ofPlatform ?? "buf", "bin/buf");
