/** The program `session-service` as tests start it. It is bundled once for a run, because hundreds of processes load it. */
import { join } from "node:path";

const ROOT = join(import.meta.dirname, "../..");

/** The script of the program. Outside of a test run, as in a bench, this is the source. */
export const PROGRAM = process.env.PROGRAM_FILE ?? join(ROOT, "src/service/main.ts");

/** Returns variables with which a process stores its compiled code for the next one. The directory exists until the end of the run. */
export function compiled(): Readonly<Record<string, string>> {
  const { NODE_COMPILE_CACHE } = process.env;
  return NODE_COMPILE_CACHE === undefined ? {} : { NODE_COMPILE_CACHE };
}
